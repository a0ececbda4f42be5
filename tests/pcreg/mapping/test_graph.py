from collections import Counter

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_about, rotation_error, se3, translation_error
from pcreg.mapping import graph
from pcreg.mapping.graph import Edge, solve
from tests.pcreg.mapping.edges import VOXEL, edge, measured, probes, random_poses, wrong


def assert_placed(found: np.ndarray, poses: np.ndarray) -> None:
    for T, true in zip(found, poses, strict=True):
        assert translation_error(T, true) < 0.02
        assert rotation_error(T, true) < 0.5


def ring(poses: np.ndarray, steps: tuple[int, ...] = (1, 2)) -> list:
    n = len(poses)
    return [measured(poses, (row + step) % n, row) for step in steps for row in range(n)]


def shifted(source: int, target: int, metres: float, confidence: float = 0.95) -> Edge:
    return edge(source, target, se3(np.eye(3), [metres, 0, 0]), confidence)


@pytest.mark.parametrize("confidence", [0.75, 0.999])
def test_wrong_edges_are_dropped_and_move_nothing(confidence):
    poses = random_poses(10)
    edges = ring(poses)
    false = [wrong(7, 0, confidence), wrong(5, 1, confidence), wrong(9, 4, confidence)]
    found = solve([*false, *edges], probes(10), VOXEL)
    assert found.rejections.keys() == {*false}
    assert all("contradicts the other pairs by" in reason for reason in found.rejections.values())
    assert (found.component == 0).all()
    assert_placed(found.poses, poses)


def test_of_edges_that_contradict_the_poses_the_weaker_half_is_rejected():
    """Edges off by more than half of the largest error are ranked by triangles, then confidence."""
    off = (0.5, 0.8), (0.5, 0.9), (0.5, 0.75), (0.5, 0.9), (0.24, 0.7)
    edges = [shifted(n, 5, *each) for n, each in enumerate(off)]
    triangles = Counter(dict(zip(edges, (0, 0, 1, 2, 0), strict=True)))
    given = triangles, np.tile(np.eye(4), (6, 1, 1)), probes(6), VOXEL
    assert list(graph._contradicting(edges, *given)) == edges[:2]
    near, far = ([shifted(n, 5, 4 * factor * VOXEL)] for n, factor in ((0, 0.99), (1, 1.01)))
    assert list(graph._contradicting(near, *given)) == []
    assert list(graph._contradicting(far, *given)) == far


def test_an_edge_that_contradicts_the_others_pulls_little():
    edges = [shifted(1, 0, metres) for metres in (0.0, 0.01, 3.0)]
    found = graph._optimised(np.tile([1, 0], (3, 1)), edges, np.tile(np.eye(4), (2, 1, 1)), tolerance=0.3)
    np.testing.assert_allclose(found[1], se3(np.eye(3), [0.005, 0, 0]), atol=0.001)


def test_a_map_does_not_depend_on_others_and_is_solved_once(monkeypatch):
    """There are two maps, and a scan without edges."""
    one, other = random_poses(10), random_poses(10, seed=1)
    edges = [*ring(one), wrong(7, 0), wrong(5, 1)]
    beside = [*ring(other), wrong(9, 4)]
    moved = [edge(e.source + 10, e.target + 10, e.T_target_source) for e in beside]
    some, solved = probes(10) * 2 + probes(1), {}
    found = solve([*moved, *edges], some, VOXEL, solved)
    assert found.component.tolist() == [0] * 10 + [1] * 10 + [2]
    np.testing.assert_array_equal(found.poses[::10], np.tile(np.eye(4), (3, 1, 1)))
    for rows, own, alone in ((slice(10), edges, edges), (slice(10, 20), moved, beside)):
        by_itself = solve(alone, probes(10), VOXEL)
        np.testing.assert_array_equal(found.poses[rows], by_itself.poses)
        assert [*map(found.rejections.get, own)] == [*map(by_itself.rejections.get, alone)]
    for name in ("_solved", "_closed_triangles", "_contradicting"):
        monkeypatch.setattr(graph, name, None)
    np.testing.assert_array_equal(solve([*moved, *edges], some, VOXEL, solved).poses, found.poses)


def test_an_edge_that_slides_is_overruled_in_that_direction_alone():
    """Scan 1, turned by 90 degrees, slides along its x axis; the edges by way of scan 2 correct it."""
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[1] = se3(rotation_about(np.array([0, 0, 1.0]), 90), np.array([2.0, 0, 0]))
    poses[2] = se3(np.eye(3), np.array([0, 1.0, 0]))
    off = se3(np.eye(3), np.full(3, 0.03))  # in the frame of scan 1
    loose = np.diag([1e-6, 1e-6, 1e-6, 1.0, 1e-6, 1e-6])
    firm = np.diag([1e-8, 1e-8, 1e-8, 1e-4, 1e-4, 1e-4])
    edges = [
        edge(1, 0, poses[1] @ off, covariance=loose),
        edge(1, 2, inverse(poses[2]) @ poses[1], covariance=firm),
        edge(2, 0, poses[2], covariance=firm),
    ]
    found = solve(edges, probes(3), VOXEL).poses[1]
    shift = (inverse(poses[1]) @ found)[:3, 3]
    np.testing.assert_allclose(shift, [0, 0.03, 0.03], atol=0.003)
