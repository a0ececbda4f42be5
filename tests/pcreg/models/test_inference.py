"""The network without PyTorch gives what the one in PyTorch gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from pcreg.features.fcgf import FCGF
from pcreg.features.pretrained import WEIGHTS
from pcreg.models.inference import InferenceResUNet
from pcreg.models.resunet import ResUNet
from pcreg.models.torch_inference import TorchInference
from pcreg.models.weights import load_weights, save_weights
from pcreg.models.weights_file import Architecture, read_weights
from tests.pcreg.scenes import wavy_sheet

TINY = Architecture(0.05, out_channels=8, encoder=(4, 6, 8, 10), decoder=(10, 6, 4, 8), stem_kernel_size=3)


def random_network(architecture: Architecture) -> ResUNet:
    """A network with random weights and statistics of norms."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = ResUNet(architecture)
        for name, tensor in network.state_dict().items():
            if "norm" in name and tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.5)
    return network


def assert_same(path, points, viewpoints=None, voxel=0.05):
    """Compare the descriptors by both networks of this file."""
    wanted = TorchInference(load_weights(path), "cpu").describe(points, viewpoints, voxel)
    found = InferenceResUNet(read_weights(path)).describe(points, viewpoints, voxel)
    assert found.dtype == wanted.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max(initial=0), strict=True)


@pytest.mark.parametrize("n", [0, 1, 1031])
def test_shipped_weights(n):
    points = FCGF.load(scales=[1]).describe(2 * wavy_sheet(4000)).points[:n]
    assert len(points) == n
    assert_same(WEIGHTS, points + 1000.0)
    assert_same(WEIGHTS, points, np.tile([0.0, 0.0, 9.0], (n, 1)))


@pytest.mark.parametrize(
    "architecture",
    [TINY, replace(TINY, kernel="ppf"), replace(TINY, stem_kernel_size=7, kernel="ppf", radius_scale=0.8)],
)
def test_networks_of_every_kind(architecture, tmp_path):
    save_weights(tmp_path / "a.safetensors", random_network(architecture), half=architecture == TINY)
    assert_same(tmp_path / "a.safetensors", wavy_sheet(701))
    assert_same(tmp_path / "a.safetensors", wavy_sheet(701), voxel=0.11)


def test_many_buckets_are_summed_a_part_at_a_time(tmp_path, monkeypatch):
    save_weights(tmp_path / "a.safetensors", random_network(TINY))
    monkeypatch.setattr("pcreg.kernels.cpu.conv.MAX_BUCKETS", 100)
    assert_same(tmp_path / "a.safetensors", wavy_sheet(701))


def test_the_number_of_threads_changes_no_bit():
    learned, points = FCGF.load(voxel=0.05), wavy_sheet(3000)
    with threadpool_limits(1):
        wanted = learned.describe(points).features
    with threadpool_limits(2):
        np.testing.assert_array_equal(learned.describe(points).features, wanted)


@pytest.mark.parametrize(
    ("architecture", "kind"), [(TINY, InferenceResUNet), (replace(TINY, snap=True), TorchInference)]
)
def test_pytorch_is_for_what_the_other_leaves_out(architecture, kind, tmp_path):
    network = random_network(architecture)
    save_weights(tmp_path / "a.safetensors", network)
    loaded = FCGF.load(tmp_path / "a.safetensors")
    assert type(loaded.network) is kind
    assert loaded.label == FCGF(network).label
