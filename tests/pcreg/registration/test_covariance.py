"""The covariance of a motion, on surfaces where it is known."""

import numpy as np
import pytest

from pcreg.geometry.se3 import adjoint, inverse, rotation_about, se3, transform
from pcreg.registration.judge.covariance import FLOOR_VOXELS, FREE_VOXELS, covariance
from pcreg.registration.judge.overlap import Overlap

VOXEL = 0.1


def walls(*sides: tuple[int, float], length: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Points and normals of rectangles 2 m high and wide and `length` m long along x, a point per voxel."""
    clouds, normals = [], []
    for axis, at in sides:
        ends = np.delete([length, 2.0, 2.0], axis)
        grid = np.stack(np.meshgrid(*(np.arange(VOXEL / 2, end, VOXEL) for end in ends)), -1).reshape(-1, 2)
        clouds.append(np.insert(grid, axis, at, axis=1))
        normals.append(np.tile(np.eye(3)[axis], (len(grid), 1)))
    return np.concatenate(clouds), np.concatenate(normals)


CORRIDOR = (1, 0.0), (1, 2.0), (2, 0.0), (2, 2.0)
ROOM = (*CORRIDOR, (0, 0.0), (0, 4.0))


def scanned(sides, noise: float, T: np.ndarray | None = None, seed: int = 0) -> np.ndarray:
    """Covariance of T between a scan with `noise` (metres) and the same scene without noise."""
    T = np.eye(4) if T is None else T
    target, normals = walls(*sides)
    rng = np.random.default_rng(seed)
    seen = target + noise * rng.standard_normal((len(target), 1)) * normals
    normals += 2 * noise * rng.standard_normal(normals.shape)  # as estimated ones
    return covariance_of(transform(inverse(T), seen), target, normals, T)


def covariance_of(source, target, normals, T: np.ndarray, unit: float = 1.0) -> np.ndarray:
    return covariance(Overlap.of(source, target, normals, T, unit * VOXEL), T, unit * VOXEL)


def deviations(C: np.ndarray) -> np.ndarray:
    return np.sqrt(np.diag(C))


def test_it_is_large_along_a_corridor_and_small_across():
    """The middle of the corridor is the origin: rotations and translations do not mix."""
    middle = se3(np.eye(3), np.array([2.0, 1.0, 1.0]))
    corridor, room = scanned(CORRIDOR, 0.01, middle), scanned(ROOM, 0.01, middle)
    assert deviations(corridor)[3] == pytest.approx(FREE_VOXELS * VOXEL, rel=0.05)
    assert deviations(corridor)[4:].max() < 0.1 * VOXEL
    assert deviations(room)[3:].max() < 0.1 * VOXEL
    assert np.linalg.eigvalsh(corridor).max() < 1
    np.testing.assert_allclose(deviations(corridor)[4:], deviations(room)[4:], rtol=1)


def test_twice_the_noise_is_four_times_the_covariance():
    """A room ten times as large, with ten times the noise, has the same covariance of rotations."""
    target, normals = walls(*ROOM)
    noise = 0.01 * np.random.default_rng(0).standard_normal((len(target), 1)) * normals
    once, twice, larger = (
        covariance_of(unit * (target + share * noise), unit * target, normals, np.eye(4), unit)
        for share, unit in ((1, 1), (2, 1), (1, 10))
    )
    np.testing.assert_allclose(np.diag(twice) / np.diag(once), 4, rtol=0.1)
    np.testing.assert_allclose(np.diag(larger) / np.diag(once), [1, 1, 1, 100, 100, 100], rtol=0.01)


def test_errors_that_neighbours_share_count_more_than_noise_of_each_point():
    """25 points with one common error are as informative as a single point."""
    target, normals = walls(*ROOM)
    rng = np.random.default_rng(0)
    places, place = np.unique(np.floor((target - 1e-9) / 0.5), axis=0, return_inverse=True)
    noise = rng.standard_normal(len(target)), rng.standard_normal(len(places))[place.ravel()]
    alone, shared = (
        covariance_of(target + 0.01 * each[:, None] * normals, target, normals, np.eye(4)) for each in noise
    )
    assert (np.diag(shared) > 4 * np.diag(alone)).all()


def test_it_is_of_the_frame_of_the_source():
    """It changes by the adjoint of the source frame; target frame and place of the source do not count."""
    quarter = se3(np.round(rotation_about((0, 0, 1), 90)), np.array([5.0, -3.0, 1.0]))
    still = scanned(ROOM, 0.01)
    np.testing.assert_allclose(
        scanned(ROOM, 0.01, quarter),
        adjoint(inverse(quarter)) @ still @ adjoint(inverse(quarter)).T,
        rtol=1e-6,
    )


@pytest.mark.parametrize("sides", [ROOM, CORRIDOR, ((2, 0.0),)], ids=["room", "corridor", "floor"])
def test_it_is_positive_definite_even_of_copies(sides):
    C = scanned(sides, 0.0)
    np.testing.assert_allclose(C, C.T, atol=1e-12)
    assert np.linalg.eigvalsh(C).min() > (FLOOR_VOXELS * VOXEL) ** 2 / 100


def test_clouds_that_do_not_touch_determine_nothing():
    points, normals = walls(*ROOM)
    C = covariance_of(points + 100, points, normals, np.eye(4))
    assert np.isfinite(C).all()
    assert deviations(C)[3:].min() > VOXEL
