"""Evidence about right and wrong motions."""

from dataclasses import replace

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, se3, transform
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.estimation.icp import Refinement
from pcreg.registration.judge.evidence import Evidence, gather_evidence
from pcreg.registration.judge.free_space import FreeSpace
from pcreg.registration.judge.overlap import Overlap
from tests.pcreg.evidences import described

DISTANCE = 0.1
MARGIN = 0.4


def wall(x: float = 3.0, step: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """A square wall across x, seen from the origin, with a floor and a side wall that fix the motion."""
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(-1, 1, step), np.arange(-1, 1, step)))
    points = [np.c_[np.full(a.shape, x), a, b], np.c_[a + x - 1, b, np.full(a.shape, -1.0)]]
    points.append(np.c_[a + x - 1, np.full(a.shape, 1.0), b])
    normals = [np.tile(n, (len(a), 1)) for n in ([-1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0])]
    return np.concatenate(points), np.concatenate(normals)


ALL = np.ones(10, dtype=bool)


def about(source: DescribedCloud, target: DescribedCloud, T: np.ndarray, agree: np.ndarray = ALL) -> Evidence:
    matched = transform(T, source.points[: len(agree)])
    refined = Refinement(T, overlap=0.5, rmse=0.02, distance=DISTANCE)
    free_space = FreeSpace(source.surface, target.surface, MARGIN, (source.viewpoint, target.viewpoint))
    overlap = Overlap.of(source.surface, target.surface, target.normals, T, DISTANCE)
    return gather_evidence(source, target, refined, overlap, free_space, len(agree), matched[agree])


def test_a_shape_speaks_for_itself():
    here = described(*wall())
    found = about(here, here, np.eye(4), agree=np.arange(100) < 90)
    assert (found.matches, found.inliers) == (100, 90)
    assert found.inlier_thickness < 1e-6  # three rows of a wall
    assert found.plane_rmse == 0
    assert (found.overlap, found.free_space_violation, found.same_side_ratio) == (0.5, 0.0, 1.0)
    assert found.rmse == 0.02  # of the refinement, and so is the overlap
    assert found.observability.min_observability > 0.05
    assert found.observability.free == ()
    assert found.contradiction == pytest.approx(1 / (len(here.surface) + 5))  # of all that is seen, none
    assert found.curved_contradiction == pytest.approx(1 / 5)  # nothing is curved
    bent = replace(here, variation=np.repeat([0.03, 0.12], len(here.surface) // 2))  # half, and all the way
    found = about(bent, bent, np.eye(4), agree=np.ones(len(here.points), dtype=bool))
    assert found.curved_contradiction == pytest.approx(1 / (0.75 * len(here.surface) + 5))
    least = np.linalg.eigvalsh(np.cov(here.points.T))[0]
    assert found.inlier_thickness * DISTANCE == pytest.approx(least**0.5)


def test_a_surface_laid_on_its_back():
    """The source saw the wall from behind, so that the two scans see opposite sides of it."""
    points, normals = wall()
    front, back = described(points[:1600], normals[:1600]), described(points[:1600], -normals[:1600])
    T = se3(rotation_about((1, 2, 3), 70), np.array([1.0, 2.0, 3.0]))
    for target, ratio in ((front, 1.0), (back, 0.0)):
        source = described(transform(inverse(T), front.points), front.normals @ T[:3, :3])
        assert about(source, target, T).same_side_ratio == ratio


def test_things_in_free_space_count_in_both_directions():
    points, normals = wall()
    board = points[:1600] * 0.5  # half way to the wall, in front of it
    cluttered = described(np.concatenate([points, board]), np.concatenate([normals, normals[:1600]]))
    bare = described(points, normals)
    one, other = about(cluttered, bare, np.eye(4)), about(bare, cluttered, np.eye(4))
    assert one.free_space_violation == pytest.approx(other.free_space_violation)
    assert one.free_space_violation > 0.2
    assert one.contradiction == pytest.approx(other.contradiction)
    assert one.contradiction > 3 * about(bare, bare, np.eye(4)).contradiction


def test_surfaces_that_lie_apart_and_lean():
    """The planes of both clouds count; source normals that lean by 110 degrees show no side."""
    points, normals = wall()
    here = described(points[:1600], normals[:1600])
    leaning = described(points[:1600], normals[:1600] @ rotation_about((0, 0, 1), 110))
    apart = se3(np.eye(3), np.array([0.5 * DISTANCE, 0, 0]))
    assert about(here, here, apart).plane_rmse == pytest.approx(0.5)
    found, lean = about(leaning, here, apart), np.cos(np.radians(110))
    assert found.plane_rmse == pytest.approx(0.5 * np.sqrt((1 + lean**2) / 2))
    assert found.same_side_ratio == 1.0


def test_nothing_in_common_is_no_evidence():
    here = described(*wall())
    T = se3(np.eye(3), np.array([0, 0, 50.0]))
    found = about(here, here, T)
    assert (found.same_side_ratio, found.observability.min_observability) == (1.0, 0.0)
    assert found.plane_rmse == 0.5
    for count, rmse in ((9, 0.5), (10, 0.0)):
        few = described(here.points[:count], here.normals[:count])
        assert about(few, few, np.eye(4), ALL[:count]).plane_rmse == rmse
