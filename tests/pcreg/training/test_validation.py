import numpy as np
import pytest

from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.runtime.errors import InputError
from pcreg.training.validation import compare, feature_match_recall
from tests.pcreg.tiny import VOXEL, Sheets


class Numbers:
    """Describe each point by its row, which is the same in both clouds; if mistaken, by another row."""

    name, voxel, device = "numbers", VOXEL, "cpu"

    def __init__(self, mistaken: bool):
        self.fingerprint, self.mistaken = f"mistaken {mistaken}", mistaken

    def describe(self, points: np.ndarray) -> Description:
        numbers = np.arange(len(points), dtype=np.float32)
        if self.mistaken:
            numbers = np.random.default_rng(abs(int(points.sum() * 1000))).permutation(numbers)
        return Description(points, numbers[:, None])


class Speechless(Numbers):
    def describe(self, points: np.ndarray) -> Description:
        raise AssertionError("asked to describe again")


@pytest.mark.usefixtures("in_process")
def test_the_table_says_what_changed_and_nothing_is_measured_twice(tmp_path):
    protocol = Protocol("test", VOXEL, tau1=1e-3, iterations=1000, gates=((0.1, 1.0),), scene_mean=False)
    before, after = Numbers(mistaken=True), Numbers(mistaken=False)
    table = compare(before, after, Sheets(3), protocol, tmp_path, seed=0)
    lines = [line.rsplit(maxsplit=3) for line in table.splitlines()]
    assert lines[0] == ["3 held-out pairs, %", "before", "after", "change"]
    assert (lines[1][0], lines[1][2]) == ("inlier ratio, mutual matches", "100.0")
    assert float(lines[1][1]) < 1
    assert lines[2] == ["feature match recall", "0.0", "100.0", "+100.0"]
    assert lines[3] == ["registration recall, 0.1 m and 1 deg", "0.0", "100.0", "+100.0"]
    again = Speechless(mistaken=True), Speechless(mistaken=False)
    assert compare(*again, Sheets(3), protocol, tmp_path, seed=0) == table
    changed = Sheets(3)
    changed.fingerprint = "other files of the same names"
    with pytest.raises(InputError, match=r"scans is  there and other files .* delete the folder .* again"):
        compare(before, after, changed, protocol, tmp_path, seed=0)


def test_inliers_are_by_default_within_two_voxels():
    found = [feature_match_recall(Numbers(True), Sheets(2), 1500, tau, 0) for tau in (None, 2 * VOXEL)]
    assert 0 < found[0]["inlier_ratio"] == found[1]["inlier_ratio"] < 1
