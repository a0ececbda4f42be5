"""Whole registrations on tensors: verdict and motion equal those with NumPy."""

import traceback
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pcreg.arrays import is_on_host, to_host
from pcreg.io.cloud import write_ply
from pcreg.models import torch_inference
from pcreg.registration import batch
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy import scales as scales_module
from pcreg.runtime.errors import InputError
from tests.pcreg.devices import TORCH, load_on


@pytest.fixture
def on_torch(monkeypatch):
    """Function that makes registrars on a GPU, or else on PyTorch's CPU; networks compute with NumPy.

    NumPy's functions refuse tensors, as they do on a GPU.
    """
    refused = []

    def refuse(tensor, *_, **__):
        refused.append(traceback.format_stack())
        raise TypeError("NumPy asks for a tensor of a device")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    monkeypatch.setattr(scales_module, "choose_device", lambda name: name)
    monkeypatch.setattr(torch_inference, "compile_kernels", lambda architecture, device: None)
    monkeypatch.setattr(scales_module, "FCGF", SimpleNamespace(load=load_on))
    yield lambda **settings: Registrar(**settings, device=TORCH)
    assert not refused, "".join(refused[0][-4:])


def assert_same(here, there):
    assert there.registered == here.registered
    assert there.confidence == pytest.approx(here.confidence, abs=5e-3)  # an inlier more or less
    assert there.reason == here.reason
    assert there.notes == here.notes
    np.testing.assert_allclose(there.T_target_source, here.T_target_source, atol=1e-6)
    assert type(there.matches) is type(there.matched_points) is np.ndarray
    if here.covariance is not None:
        np.testing.assert_allclose(there.covariance, here.covariance, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
@pytest.mark.parametrize("viewpoint", ["auto", "each"])
def test_a_pair_is_registered_alike(room, descriptor, viewpoint, on_torch):
    clouds = room.source[::2], room.target[::2]
    found = []
    settings = {"descriptor": descriptor, "voxel": 0.15}
    for registrar in (Registrar(**settings), on_torch(**settings)):
        places = [np.zeros_like(points) if viewpoint == "each" else "auto" for points in clouds]
        prepared = [registrar.prepare(a, viewpoint=b) for a, b in zip(clouds, places, strict=True)]
        found.append(registrar.register(*prepared))
    assert not is_on_host(prepared[0].points)
    if descriptor == "fcgf":  # products of histograms are large: rounded otherwise they have other matches
        assert_same(*found)
    assert found[0].registered
    assert found[1].registered


def test_a_pair_that_does_not_fit_is_refused_alike(room, on_torch):
    """The pair goes through all scales and the mirror test."""
    clouds = room.source[::2] * [-1, 1, 1], room.target[::2]
    assert_same(*(registrar.register(*clouds) for registrar in (Registrar(), on_torch())))


def test_a_given_motion_is_verified_alike(room, on_torch):
    clouds, T = (room.source[::2], room.target[::2]), room.T_target_source
    assert_same(*(registrar.verify(*clouds, T) for registrar in (Registrar(), on_torch())))


def test_files_and_maps_are_registered_alike(room, on_torch, tmp_path):
    """Descriptions are stored as NumPy arrays; scale and place are found from tensors."""
    for name, points in (("a", room.source[::2]), ("b", room.target[::2])):
        write_ply(tmp_path / f"{name}.ply", points)
    pair = str(tmp_path / "a.ply"), str(tmp_path / "b.ply")
    there = on_torch(voxel=0.3)
    for _ in range(2):  # the second time from what is stored
        (record,) = batch.run(there, [pair], tmp_path / "out", workers=0)
        assert record["registered"]
    here = Registrar(voxel=0.3)
    clouds = room.source[::2] / 3, room.target[::2]
    assert_same(*(each.register(*clouds, scale=True) for each in (here, there)))
    maps = [each.prepare(room.target, is_map=True) for each in (here, there)]
    assert_same(*(each.register(room.source, map_) for each, map_ in zip((here, there), maps, strict=True)))


def test_points_beyond_the_memory_of_a_gpu_are_computed_again(room, on_torch):
    clouds = [on_torch().prepare(room.source[::20]) for _ in range(6)]
    first = clouds[0].points
    assert clouds[0].points is first
    for cloud in clouds:
        _ = cloud.points
    assert clouds[0].points is not first
    np.testing.assert_array_equal(to_host(clouds[0].points), to_host(first))
    with pytest.raises(InputError, match=f"source: prepared for {TORCH}, not cpu; prepare it again"):
        Registrar().register(clouds[0], room.target)
