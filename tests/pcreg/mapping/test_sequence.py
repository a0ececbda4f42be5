"""Consecutive scans of a drive: odometry joins neighbours."""

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.mapping import consolidation, growing_map, mapping
from pcreg.registration.registrar import Registrar
from tests.datasets.street import street_pose, street_scan

pytest.importorskip("small_gicp", reason="small_gicp is not installed (the odometry extra)")
VOXEL = 0.3
NUMBERS = (0, 3, 6, 9, 12)  # of poses


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drive")
    for row, number in enumerate(NUMBERS):
        np.save(folder / f"scan_{row}.npy", street_scan(street_pose(number), seed=number))
    return [str(path) for path in sorted(folder.glob("*.npy"))]


def mapped(paths, folder, monkeypatch):
    """The map by odometry alone."""
    monkeypatch.setattr(growing_map, "MAX_PAIRS_PER_SCAN", 0)
    monkeypatch.setattr(consolidation, "MAX_PASSES", 0)
    return mapping.run(Registrar(descriptor="fpfh", voxel=VOXEL), paths, folder, sequence=True, workers=0)


def test_odometry_joins_neighbours(drive, tmp_path, monkeypatch):
    found = mapped(drive, tmp_path, monkeypatch)
    used = [edge for edge in found.edges if edge.used]
    assert {(1, 0), (2, 1), (3, 2), (4, 3)} == {(edge.source, edge.target) for edge in used}
    assert all(edge.reason.startswith("odometry: ") for edge in used)
    for edge in used:
        true = inverse(street_pose(NUMBERS[edge.target])) @ street_pose(NUMBERS[edge.source])
        assert translation_error(edge.T_target_source, true) < 0.1
        assert rotation_error(edge.T_target_source, true) < 0.5
    assert found.is_whole


def test_a_step_that_is_rejected_joins_nothing(drive, tmp_path, monkeypatch):
    """Noise in the middle of the list: the scans before and after it are two maps, which a loop may join."""
    np.save(tmp_path / "other.npy", np.random.default_rng(0).uniform(-8, 8, (5000, 3)))
    found = mapped([*drive[:2], str(tmp_path / "other.npy"), *drive[2:4]], tmp_path, monkeypatch)
    assert {(edge.source, edge.target) for edge in found.edges} == {(1, 0), (4, 3)}
    assert found.count == 2
    assert found.alone == [2]
