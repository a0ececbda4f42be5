import pytest
import torch

from pcreg.kernels.dataflow import arrange
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Buckets
from tests.kernels.clouds import random_triplets

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_float64_takes_plain_pytorch(device):
    triplets = random_triplets(20, 20).to(device)
    assert isinstance(arrange(triplets, torch.float64), Buckets)


@needs_gpu
def test_occupied_buckets_go_output_stationary_and_sparse_ones_only_if_they_must_repeat():
    dense, sparse = (random_triplets(100, 100, fan_in=fan_in).to("cuda") for fan_in in (1.0, 0.1))
    assert isinstance(arrange(dense, torch.float32), Tiles)
    assert arrange(sparse, torch.float32) is None
    assert isinstance(arrange(sparse, torch.float32, deterministic=True), Tiles)
