import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from pcreg.geometry.normals import normals_of
from pcreg.geometry.se3 import inverse, rotation_about, rotation_error, se3, transform, translation_error
from pcreg.registration.estimation import icp
from pcreg.registration.estimation.icp import Refinement, Surface


def corner(count: int = 4000, seed: int = 0) -> np.ndarray:
    """Points on three walls, 2 m wide, that meet in a corner, which determines every motion."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 2, (count, 3))
    points[np.arange(count), rng.integers(3, size=count)] = 0
    return points


def with_normals(points: np.ndarray, distance: float) -> Surface:
    return Surface(points, normals_of(points, 3 * distance)[0])


def refine(source: np.ndarray, target: np.ndarray, start: np.ndarray, distance: float) -> Refinement:
    return refine_surfaces(with_normals(source, distance), with_normals(target, distance), start, distance)


def refine_surfaces(source: Surface, target: Surface, start: np.ndarray, distance: float) -> Refinement:
    """Refine by arrays, and check that tensors give the same result."""
    motions = np.stack([start, start @ se3(np.eye(3), [distance / 2, 0, 0])])
    found, _ = icp.refine(source, target, motions, distance)
    tensors = (Surface(*map(torch.from_numpy, each)) for each in (source, target))
    by_tensors, _ = icp.refine(*tensors, motions, distance)
    np.testing.assert_allclose(by_tensors.T_target_source, found.T_target_source, rtol=1e-9, atol=1e-9)
    assert (by_tensors.overlap, by_tensors.rmse) == pytest.approx((found.overlap, found.rmse), abs=1e-9)
    return found


@pytest.mark.parametrize("shift", [(0, 0, 0), (5e5, 4e6, 100)])
def test_a_rough_start_becomes_exact(shift):
    """The walls start beyond the distance; a shelf that the target lacks is within twice the distance."""
    walls = corner()
    target = Surface(walls, np.eye(3)[walls.argmin(axis=1)])
    shelf = np.random.default_rng(5).uniform([0.3, 0.3, 0.15], [1.7, 1.7, 0.15], (600, 3))
    T_true = se3(rotation_about((1, 2, 3), 40), np.array([0.3, -0.2, 0.5]))
    seen = Surface(
        np.concatenate([walls[:2400], shelf]), np.concatenate([target.normals[:2400], [[0, 0, 1]] * 600])
    )
    source = Surface(*(rows[0] for rows in seen.moved(inverse(T_true)[None])))
    place = se3(np.eye(3), np.array(shift, dtype=np.float64))
    start = se3(rotation_about((0, 1, 1), 1), np.array([-0.15, -0.14, -0.16])) @ T_true
    shifted = target._replace(points=transform(place, walls))
    refined = refine_surfaces(source, shifted, place @ start, distance=0.1)
    found = inverse(place) @ refined.T_target_source
    assert rotation_error(found, T_true) < 1e-3
    assert translation_error(found, T_true) < 1e-4
    assert refined.overlap == pytest.approx(0.8, abs=0.05)  # some of the shelf is near another wall


@pytest.mark.parametrize("unit", [1.0, 1e5, 1e-5])
def test_noise_is_averaged_out_in_any_unit(unit):
    rng = np.random.default_rng(1)
    source, target = (unit * (corner(6000, seed) + 0.01 * rng.normal(size=(6000, 3))) for seed in (2, 3))
    start = se3(rotation_about((0, 0, 1), 1.5), unit * np.array([0.03, 0.02, -0.03]))
    refined = refine(source, target, start, distance=0.1 * unit)
    assert rotation_error(refined.T_target_source, np.eye(4)) < 0.1
    assert translation_error(refined.T_target_source, np.eye(4)) < 0.002 * unit


@pytest.mark.parametrize("seed", range(3))
def test_a_curved_surface_with_a_dent_comes_back(seed):
    """On these parts of an ellipsoid point-to-plane ICP is 8 mm off or more, and 17 mm without weights."""
    rng, axes = np.random.default_rng(seed), np.array([0.5, 0.35, 0.25])
    unit = rng.normal(size=(3000, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    normals = unit / axes / np.linalg.norm(unit / axes, axis=1, keepdims=True)
    in_front, behind = unit[:1500, 0] > -0.2, unit[1500:, 0] < 0.6
    parts = np.flatnonzero(in_front), 1500 + np.flatnonzero(behind)
    source, target = (Surface(unit[part] * axes, normals[part]) for part in parts)
    dented = source.points - 0.03 * source.normals * (source.points[:, 2:] > 0.15)
    start = se3(rotation_about((1, 1, 0), 2), np.array([0.02, -0.02, 0.01]))
    refined = refine_surfaces(source._replace(points=dented), target, start, distance=0.08)
    assert translation_error(refined.T_target_source, np.eye(4)) < 0.006


def score(source: np.ndarray, target: np.ndarray, T: np.ndarray, distance: float) -> float:
    """The score that refine documents."""
    return np.maximum(0, 1 - (cKDTree(target).query(transform(T, source))[0] / distance) ** 2).sum()


def test_a_start_that_scores_better_by_chance_is_left():
    """With two samples of the same walls, a motion's score depends on pairs that are near by chance."""
    better = 0
    for seed in range(10):
        source, target = corner(1500, seed), corner(1500, 100 + seed)
        direction = np.random.default_rng(seed).normal(size=3)
        start = se3(np.eye(3), 0.005 * direction / np.linalg.norm(direction))
        refined = refine(source, target, start, distance=0.15).T_target_source
        assert translation_error(refined, np.eye(4)) < 0.004
        better += score(source, target, start, 0.15) > score(source, target, refined, 0.15)
    assert better


@pytest.mark.parametrize("seed", [2, 3])
def test_hardly_worse_than_the_start(seed):
    """Half of the source are points of the target, not a surface, so both stages move away from them."""
    rng = np.random.default_rng(seed)
    target, noise = rng.uniform(0, 1, (300, 3)), 0.02 * rng.normal(size=(150, 3))
    source = np.concatenate([target[:150] + noise, rng.uniform(0, 1, (150, 3))])
    refined = refine(source, target, np.eye(4), distance=0.15)
    least = (1 - 0.01) * score(source, target, np.eye(4), 0.15) - 1e-9
    assert score(source, target, refined.T_target_source, 0.15) >= least


def test_overlap_and_rmse_are_those_of_the_near_points():
    grid = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0), [0.0, 5.0]), axis=-1).reshape(-1, 3)
    source = np.concatenate([grid, grid[:50] + 100])
    refined = refine(source, grid, np.eye(4), distance=0.5)
    assert refined.overlap == pytest.approx(200 / 250)
    assert refined.rmse == pytest.approx(0, abs=1e-12)


def test_clouds_out_of_reach_keep_the_start():
    """A direction that is determined 1e8 times less well than all others is not changed either."""
    for least, step in ((1e-9, 0.0), (1e-7, 1.0)):
        sums = np.insert(np.diag([1, 1, 1, 1, 1, least]), 6, least, axis=1)
        assert icp._solutions(sums)[5] == pytest.approx(step)
    start = se3(np.eye(3), np.array([50.0, 0, 0]))
    refined = refine(corner(500), corner(500), start, distance=0.1)
    np.testing.assert_allclose(refined.T_target_source, start, atol=1e-9)
    assert refined.overlap == 0
    assert refined.rmse == 0
