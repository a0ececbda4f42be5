"""What computes on a device agrees with the definitions: on a GPU, or else with PyTorch on the CPU."""

from dataclasses import fields
from functools import partial

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import rotation_about, se3
from pcreg.io.cloud import Cloud
from pcreg.registration import gpu
from pcreg.registration.backend import CPU, Backend, backend_on
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.gpu import arrays, cell_counts
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet

T = se3(rotation_about([1, 2, 3], 25), np.array([0.3, -0.2, 0.1]))
NAME = "cuda" if torch.cuda.is_available() else "cpu"
DEVICE = Backend(**{name: partial(on_device, device=NAME) for name, on_device in gpu.BACKEND.items()})


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_part_has_its_counterpart():
    assert {field.name for field in fields(Backend)} == {*gpu.BACKEND, "each"}
    assert backend_on("cpu") is CPU


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_local_points_are_the_same_to_the_last_bit(rng, is_mirrored):
    given = rng.normal(scale=30, size=(1000, 3)) + np.array([4e5, 5e6, 100.0])
    frame = LocalFrame.of(Cloud(given).box)
    here, there = (backend.local_points(given, frame, is_mirrored) for backend in (CPU, DEVICE))
    rows = rng.permutation(1000)[:300]
    assert there.shape == here.shape
    assert len(there) == len(here)
    np.testing.assert_array_equal(np.asarray(there), here)
    some = np.asarray(there.take(rows, axis=0))
    np.testing.assert_array_equal(some, here.take(rows, axis=0))
    assert arrays.on(some, NAME) is arrays.kept_on(some, NAME)  # has not left the device
    np.testing.assert_array_equal(DEVICE.box(there), CPU.box(here))
    np.testing.assert_array_equal(DEVICE.box(here), CPU.box(here))


def test_points_that_lost_their_room_on_a_device_are_computed_again(rng, monkeypatch):
    given = rng.normal(size=(100, 3))
    points = DEVICE.local_points(given, LocalFrame.of(Cloud(given).box), False)
    once = points.tensor
    assert points.tensor is once
    monkeypatch.setattr(arrays, "MAX_KEPT_BYTES", 0)
    arrays.kept(object(), NAME, lambda: once)  # takes the room of all
    assert points.tensor is not once
    np.testing.assert_array_equal(points.tensor.cpu(), once.cpu())


def test_a_cloud_has_the_same_scale(rng, monkeypatch):
    points = np.concatenate([wavy_sheet(4000), rng.uniform(-30, 30, (40, 3))])
    waits, count = [], cell_counts.occupied_and_crowded
    monkeypatch.setattr(cell_counts, "occupied_and_crowded", lambda *a: waits.append(a) or count(*a))
    here, there = (backend.sample(points, "sheet") for backend in (CPU, DEVICE))
    assert (here.count, here.kept, here.voxel()) == (there.count, there.kept, there.voxel())
    assert len(waits) == 6  # for two bisections of twelve steps
    assert here.extent == pytest.approx(there.extent, rel=1e-12)
    here, there = here.cell_counts, there.cell_counts
    np.testing.assert_array_equal(here.columns, there.columns.cpu())
    for voxel in (0.5, 0.1, 0.003):  # the last in more cells than a table of the device has
        np.testing.assert_array_equal(np.sort(here.counts(voxel)), np.sort(there.counts(voxel)))
        assert here.occupied(voxel) == there.occupied(voxel)
        assert here.crowded(voxel) == there.crowded(voxel)
    for backend in (CPU, DEVICE):
        with pytest.raises(InputError, match="no two different points"):
            backend.sample(np.ones((3, 3)), "dot")


def test_a_voxel_that_is_too_small_is_refused():
    for backend in (CPU, DEVICE):
        with pytest.raises(InputError, match="too small for this cloud"):
            backend.voxel_downsample(np.eye(3), 1e-10)


@pytest.mark.parametrize("origin", [None, np.array([0.3, 0.4, -0.7])])
def test_the_same_rows_are_kept(rng, origin):
    points = np.concatenate([wavy_sheet(3000), wavy_sheet(50)])  # some of them twice
    rows = [backend.voxel_downsample(points, 0.05, origin) for backend in (CPU, DEVICE)]
    np.testing.assert_array_equal(*rows)


def test_the_same_points_are_hidden(rng):
    surface = wavy_sheet(900)
    places = np.concatenate([surface[:3] + 0.5, rng.normal(scale=3, size=(20, 3))])
    views = [backend.view(surface, np.roll(surface, 1, 0), 0.1) for backend in (CPU, DEVICE)]
    np.testing.assert_allclose(*(view.of_points(500).hidden(places) for view in views), atol=1e-12)


def test_normals_and_how_flat_a_surface_is():
    points = wavy_sheet(800)
    here, there = (backend.normals_of(points, 0.2) for backend in (CPU, DEVICE))
    np.testing.assert_allclose(np.abs((here * there).sum(1)), 1, atol=1e-6)
    variations = [backend.surface_variation(points[::3], points, 0.2) for backend in (CPU, DEVICE)]
    np.testing.assert_allclose(*variations, atol=1e-9)


def test_trees_are_asked_alike(rng):
    points, queries = rng.uniform(0, 1, (200, 3)), rng.uniform(0, 1, (70, 3))
    for asked in (
        lambda tree: tree.query(queries)[0],
        lambda tree: tree.query(queries)[1],
        lambda tree: tree.query(queries, [8])[0],
    ):
        np.testing.assert_allclose(asked(CPU.index(points)), asked(DEVICE.index(points)), rtol=1e-14)


def test_arrays_that_stay_are_brought_to_a_device_once(monkeypatch):
    small, large = np.zeros(4), np.zeros(40)
    kept = arrays.kept_on(small, "cpu")
    assert arrays.kept_on(small, "cpu") is kept
    assert arrays.kept_on(small.copy(), "cpu") is not kept
    monkeypatch.setattr(arrays, "MAX_KEPT_BYTES", large.nbytes)
    arrays.kept_on(large, "cpu")  # takes the place of all before it
    assert arrays.kept_on(small, "cpu") is not kept


def test_rows_that_a_device_has_are_taken_from_there():
    rows = torch.rand(5, 4, device=NAME)
    assert DEVICE.features(rows) is rows
    np.testing.assert_array_equal(CPU.features(rows), rows.cpu())


def test_the_same_points_have_neighbors(rng):
    points = np.concatenate([wavy_sheet(500), wavy_sheet(20), rng.uniform(-30, 30, (9, 3))])
    for count in (0, 1, 4, 600):
        here, there = (backend.have_neighbors(points, count, 0.1) for backend in (CPU, DEVICE))
        np.testing.assert_array_equal(here, there)
