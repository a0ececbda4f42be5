"""The work of stages of mapping for two numbers of scans, in calls: seconds depend on the machine."""

import sys

import numpy as np
import pytest

from pcreg.mapping import consolidation, graph
from pcreg.mapping.consolidation import Consolidation
from pcreg.mapping.growing_map import FEW_SCANS, GrowingMap
from tests.pcreg.mapping.edges import COVARIANCE, VOXEL, growing_map, measured, probes, random_poses, scan

FEW, MANY = 30, 180


def calls(function) -> int:
    """Number of calls of Python and C functions."""
    count = 0

    def counted(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def pose_graph(n, _folder):
    """A ring of scans; every second one has a further scan, joined by that single edge."""
    poses = random_poses(n)
    ring = 2 * n // 3
    pairs = [(row, (row + step) % ring) for row in range(ring) for step in (1, 2)]
    pairs += [(row, row - ring) for row in range(ring, n)]
    edges = [measured(poses, *pair, confidence=0.9) for pair in pairs]
    some = probes(n)
    return lambda: graph.solve(edges, some, VOXEL)


def maps(n, folder):
    """Maps of two scans; a refused pair with agreeing matches lies between each map and two others."""
    rng = np.random.default_rng(0)
    surface = scan(rng.uniform(0, 1, (200, 3)))
    growing = growing_map(folder, {str(row): surface for row in range(n)})
    for row in range(0, n, 2):
        edge = measured(np.tile(np.eye(4), (n, 1, 1)), row + 1, row, confidence=0.99)
        growing.edges[row + 1, row] = edge
        for other in (row - 2, row - 4):
            motion = {"registered": False, "confidence": 0.4, "T_target_source": np.eye(4).tolist()}
            growing.answers[row, other % n] = motion
            growing.inliers[row, other % n] = growing.inliers[other % n, row] = 5
    growing.solve()
    return Consolidation(growing).run


@pytest.mark.parametrize("stage", [pose_graph, maps])
def test_work_grows_no_faster_than_the_number_of_pairs(stage, tmp_path, monkeypatch):
    def refused(_work, _paths, _voxel, question):
        if question.T_target_source is None:
            return []
        return {"confidence": 0.0, "reason": "", "T_target_source": np.eye(4), "covariance": COVARIANCE}

    monkeypatch.setattr(consolidation, "answered", refused)
    monkeypatch.setattr(consolidation, "progress", lambda items, *_: items)
    stage(FEW, tmp_path / "first")()  # imports
    few, many = calls(stage(FEW, tmp_path / "few")), calls(stage(MANY, tmp_path / "many"))
    assert many < MANY / FEW * few


def test_a_pair_of_many_scans_needs_more_confidence():
    surface = scan(np.random.default_rng(0).uniform(0, 1, (200, 3)))

    def grown(n):
        found = GrowingMap(None, {str(row): surface for row in range(n)}, VOXEL, None, None)
        motion = np.eye(4).tolist()
        record = {"registered": True, "reason": "", "T_target_source": motion, "local_covariance": COVARIANCE}
        found._add_record(1, 0, record | {"confidence": 0.8})
        found._add_record(2, 0, record | {"confidence": 0.99})
        return found

    assert set(grown(FEW_SCANS).edges) == {(1, 0), (2, 0)}
    many = grown(4 * FEW_SCANS)
    assert set(many.edges) == {(2, 0)}
    assert many.needed(0.5) == pytest.approx(0.8)
    assert many.needed(0.9999) == graph.SURE_CONFIDENCE
