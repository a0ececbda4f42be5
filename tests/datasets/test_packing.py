import pickle

import numpy as np
import pytest
import torch

from pcreg.datasets import loading
from pcreg.datasets.loading import ALIGNMENT, Packed, can_share
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from tests.pcreg.scenes import wavy_sheet


def tensors():
    matrix = torch.arange(12.0).view(3, 4)
    return {
        "transposed": matrix.T,
        "row": matrix[1],
        "scalar": torch.tensor(3, dtype=torch.int64),
        "mask": torch.tensor([True, False, True]),
        "none": torch.empty(0, 3, dtype=torch.float64),
        "half": torch.ones(5, dtype=torch.bfloat16),
    }


def test_what_was_packed_is_there_again():
    thing = {"tensors": tensors(), "name": "a", "again": [None, 1.5]}
    found = Packed.of(thing).unpacked()
    assert (found["name"], found["again"]) == ("a", [None, 1.5])
    for name, wanted in thing["tensors"].items():
        assert found["tensors"][name].dtype == wanted.dtype
        assert torch.equal(found["tensors"][name], wanted)


def test_kernels_find_each_where_they_can_load_it():
    found = Packed.of(tensors()).unpacked()
    assert all(tensor.data_ptr() % ALIGNMENT == 0 for tensor in found.values())


def test_the_same_tensor_stays_the_same_and_a_view_is_packed_alone():
    large = torch.zeros(10_000)
    packed = Packed.of([large[:10], large[:10], row := large[5:8], row])
    _, _, third, fourth = packed.unpacked()
    assert third is fourth
    assert len(packed.content) == 48 + 48 + 16
    assert len(pickle.dumps(packed)) < 2_000


def test_tensors_of_two_devices_are_refused():
    with pytest.raises(RuntimeError):
        Packed.of([torch.zeros(3), torch.zeros(3, device="meta")])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_pyramid_keeps_what_was_derived(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    batch = PointBatch.from_clouds([wavy_sheet(300), np.empty((0, 3)), wavy_sheet(200, seed=1)])
    pyramid = Pyramid.build(batch.to(device), PyramidConfig(voxel=0.05))
    found = Packed.of(pyramid).unpacked().to(device)
    assert torch.equal(found.stem, pyramid.stem)
    assert found.same[0]._arrangements.keys() == {"tiles" if device == "cuda" else "buckets"}
    assert found.row_groups == pyramid.row_groups
    for there, wanted in zip(found.down, pyramid.down, strict=True):
        for triplets, each in ((there, wanted), (there.transposed, wanted.transposed)):
            assert torch.equal(triplets.i, each.i)
            assert triplets._arrangements.keys() == each._arrangements.keys()
    for level, wanted in zip(found.levels, pyramid.levels, strict=True):
        assert torch.equal(level.points, wanted.points)


def test_memory_that_processes_cannot_share_is_noticed(monkeypatch):
    assert can_share("cpu")

    def refuse(_):
        raise RuntimeError("CUDA error: operation not supported")

    monkeypatch.setattr(loading, "reduce_tensor", refuse)
    assert not can_share("cpu")
