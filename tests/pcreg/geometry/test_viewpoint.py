"""Estimated place of the sensor, for scans cast from a known place, in their own and other frames."""

import numpy as np
import pytest

from pcreg.datasets.simulated import objects
from pcreg.geometry.normals import normals_of, towards
from pcreg.geometry.se3 import box, random_rotation, transform
from pcreg.geometry.viewpoint import Viewpoint, estimated_viewpoint, is_within, viewpoint_around
from pcreg.geometry.voxel_size import Sample
from pcreg.registration.clouds.preprocess import downsample_and_filter
from tests.datasets.street import street_pose, street_scan

AWAY = np.array([6.0, -7.0, 3.0])


def sweep(seed: int = 0) -> np.ndarray:
    """A hall of 20 x 12 x 6 m, seen all around from (0, 0, 0): one return for each of 40,000 directions."""
    rays = np.random.default_rng(seed).standard_normal((40_000, 3))
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    ends = np.where(rays > 0, [12.0, 7.0, 4.5], [-8.0, -5.0, -1.5])
    return rays * (ends / rays).min(1)[:, None]


def fragment(seed: int = 0, boxes: int = 4) -> np.ndarray:
    """A wall, a floor and boxes before a camera that looks along z from (0, 0, 0), downsampled to 3 cm.

    The camera moves by 0.3 m to either side, as while a fragment is recorded: surfaces seen from a single
    place could as well have been seen from behind.
    """
    rng = np.random.default_rng(seed)
    corners = np.c_[rng.uniform(-1, 0.6, boxes), rng.uniform(-0.8, 0.9, boxes), rng.uniform(1.3, 2.4, boxes)]
    sizes = rng.uniform(0.3, 0.6, (boxes, 3))
    seen = []
    for x in (-0.3, 0.0, 0.3):
        camera = np.array([x, 0, 0])
        rays = np.c_[rng.uniform(-0.6, 0.6, 60_000), rng.uniform(-0.5, 0.5, 60_000), np.ones(60_000)]
        depth = np.minimum(3.0, np.where(rays[:, 1] > 0, 1.2 / np.maximum(rays[:, 1], 1e-9), np.inf))
        for corner, size in zip(corners, sizes, strict=True):
            ends = np.stack([(corner - camera) / rays, (corner + size - camera) / rays])
            enters, leaves = ends.min(0).max(1), ends.max(0).min(1)
            depth = np.where(enters < leaves, np.minimum(depth, enters), depth)
        seen.append(camera + rays * depth[:, None])
    points = np.concatenate(seen)
    return points[downsample_and_filter(points, 0.03, np.zeros(3))]


def half(points: np.ndarray) -> np.ndarray:
    """Half of the points, at random."""
    return points[np.random.default_rng(0).random(len(points)) < 0.5]


def estimate(points: np.ndarray, voxel: float = 0.06) -> tuple[Viewpoint, np.ndarray, np.ndarray]:
    """The estimated viewpoint, the surface used for it, and normals of either sign."""
    surface = points[downsample_and_filter(points, voxel, box(points)[0])]
    normals = normals_of(surface, 3 * voxel)[0]
    return estimated_viewpoint(points, surface, normals, voxel), surface, normals


def same_side(points: np.ndarray, sensor: np.ndarray, voxel: float) -> float:
    """The fraction of surfaces whose normals point to the side of the sensor that saw them."""
    found, surface, normals = estimate(points, voxel)
    seen = towards(sensor, surface, normals)
    clear = np.abs((seen * (sensor - surface)).sum(1)) > 0.2 * np.linalg.norm(sensor - surface, axis=1)
    return float(((towards(found.position, surface, normals) * seen).sum(1) > 0)[clear].mean())


@pytest.mark.parametrize(
    ("cloud", "voxel"),
    [(sweep(), 0.3), (fragment(1), 0.06), (half(fragment(3)), 0.06)],  # of the last the spacing is chance
    ids=["sweep", "fragment", "half_a_fragment"],
)
@pytest.mark.parametrize("away", [np.zeros(3), AWAY], ids=["at_the_sensor", "elsewhere"])
def test_the_sides_are_those_that_the_sensor_saw(cloud, voxel, away):
    assert same_side(cloud + away, away, voxel) > 0.9


@pytest.mark.parametrize("index", [0, 2, 6])
def test_an_object_was_seen_from_outside_in_any_attitude(index, monkeypatch):
    """Nothing is occluded from either side, and from behind fewer surfaces are slanted."""
    monkeypatch.setattr(objects, "VIEWS", (1, 1))
    scan = objects.record(7, index).clouds[0].double().numpy()
    rotated = scan @ random_rotation(np.random.default_rng(index)).T
    voxel = Sample.of(scan, "object").voxel()
    assert [same_side(points, np.zeros(3), voxel) > 0.95 for points in (scan, rotated)] == [True, True]


@pytest.mark.parametrize("index", [1, 8])
def test_an_object_scanned_all_around_was_seen_from_outside(index):
    """The place that sees most of it lies within it, where half of the normals would point inwards."""
    recording = objects.record(7, index)
    scans = [scan.double().numpy() for scan in recording.clouds]
    points = np.concatenate([*map(transform, recording.T_world_cloud, scans)])
    sensors = np.repeat(recording.T_world_cloud[:, :3, 3], [*map(len, scans)], axis=0)
    voxel = Sample.of(points, "object").voxel()
    rows = downsample_and_filter(points, voxel, box(points)[0])
    surface, seen_from = points[rows], sensors[rows]
    normals = normals_of(surface, 3 * voxel)[0]
    inside = estimated_viewpoint(points, surface, normals, voxel).position
    assert is_within(inside, surface)
    assert not is_within(sensors[0], surface)
    places = viewpoint_around(points, surface, normals, voxel).of_rows(rows)
    truth = towards(seen_from, surface, normals)
    same = [(towards(of, surface, normals) * truth).sum(1) > 0 for of in (places, inside)]
    assert same[0].mean() > 0.9
    assert same[1].mean() < 0.8


@pytest.mark.parametrize("far", [3.0, 3e5])
def test_the_estimate_does_not_depend_on_how_far_the_origin_is(far):
    cloud = fragment(2)
    one, surface, _ = estimate(cloud + AWAY)
    other, moved, _ = estimate(cloud + far * AWAY)
    assert len(moved) == len(surface)
    np.testing.assert_allclose(other.position - far * AWAY, one.position - AWAY, atol=1e-6)


def test_the_spacing_of_a_spinning_lidar_proves_where_it_stood():
    """The spacing of fragments proves nothing."""
    scan = street_scan(street_pose(3), seed=3, rays=40_000) + AWAY
    found, _, _ = estimate(scan, 0.3)
    assert found.known
    assert np.linalg.norm(found.position - AWAY) < 2
    assert not estimate(fragment(1))[0].known
