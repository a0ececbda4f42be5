"""Compiling for networks before their weights are there; what is compiled: tests/kernels/test_warmup.py."""

from dataclasses import replace

import pytest
import torch

from pcreg.features import fcgf
from pcreg.features.pretrained import MIN_OUTDOOR_VOXEL, weights_for
from pcreg.models import network_kernels
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import save_weights
from pcreg.models.weights_file import read_architecture
from tests.pcreg.tiny import network

compilation = pytest.importorskip("pcreg.kernels.triton.compilation")


@pytest.fixture
def rehearsed(monkeypatch):
    """The networks that were rehearsed, with what is then compiled."""
    found = {}

    def rehearse(features, geometry, device):
        assert torch.is_inference_mode_enabled()
        return found.setdefault(features.__self__, object())

    def compile_(needed, cores):
        assert started.pop() == "cpu"
        return needed

    started = []
    monkeypatch.setattr(network_kernels, "start", started.append)
    monkeypatch.setattr(network_kernels, "rehearse", rehearse)
    monkeypatch.setattr(compilation, "Compilation", compile_)
    monkeypatch.setattr(network_kernels, "_begun", {})
    return found


def test_networks_of_one_architecture_are_compiled_once_at_all_voxel_sizes(rehearsed):
    architecture = network().architecture
    first = network_kernels.begin_compiling(architecture, "cpu")
    again = network_kernels.begin_compiling(replace(architecture, voxel=7.0), "cpu")
    other = network_kernels.begin_compiling(replace(architecture, stem_kernel_size=3), "cpu")
    assert first is again is not other
    assert len(rehearsed) == 2
    assert not any(each.training for each in rehearsed)


def test_which_of_the_shipped_weights_are_used_need_not_be_known():
    indoor, outdoor = map(read_architecture, (weights_for(0.0), weights_for(MIN_OUTDOOR_VOXEL)))
    assert replace(indoor, voxel=1.0) == replace(outdoor, voxel=1.0)


def test_loading_weights_for_a_gpu_begins(rehearsed, tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(network_kernels, "begin_compiling", lambda *what: begun.append(what))
    save_weights(tmp_path / "w.safetensors", network())
    for device in ("cpu", "cuda:1"):
        fcgf._load(tmp_path / "w.safetensors", device)
    fcgf.compile_for(None, "cuda")
    fcgf.compile_for(tmp_path / "w.safetensors", "cuda")
    assert begun == [
        (network().architecture, "cuda:1"),
        (read_architecture(weights_for(0.0)), "cuda"),
        (network().architecture, "cuda"),
    ]
    assert isinstance(fcgf._load(tmp_path / "w.safetensors", "cuda:1"), ResUNet)
