import numpy as np

from pcreg.comparison import compare
from pcreg.descriptors import Description
from pcreg.protocol import Protocol

from .tiny import VOXEL, Sheets


class Numbers:
    """Describes each point by its row, the same in both clouds of a pair; or, if mistaken, by another."""

    name, voxel = "numbers", VOXEL

    def __init__(self, mistaken: bool):
        self.fingerprint, self.mistaken, self.described = f"mistaken {mistaken}", mistaken, 0

    def describe(self, points: np.ndarray) -> Description:
        self.described += 1
        numbers = np.arange(len(points), dtype=np.float32)
        if self.mistaken:
            numbers = np.random.default_rng(self.described).permutation(numbers)
        return Description(points, numbers[:, None])


def test_the_table_says_what_changed_and_nothing_is_measured_twice(tmp_path):
    protocol = Protocol("test", VOXEL, tau1=1e-3, iterations=1000, gates=((0.1, 1.0),), scene_mean=False)
    before, after = Numbers(mistaken=True), Numbers(mistaken=False)
    table = compare(before, after, Sheets(3), protocol, tmp_path, seed=0)
    lines = [line.rsplit(maxsplit=3) for line in table.splitlines()]
    assert lines[0] == ["3 held-out pairs, %", "before", "after", "change"]
    assert lines[1][0] == "inlier ratio, mutual matches"
    assert float(lines[1][1]) < 1
    assert lines[1][2] == "100.0"
    assert lines[2] == ["feature match recall", "0.0", "100.0", "+100.0"]
    assert lines[3] == ["registration recall, 0.1 m and 1 deg", "0.0", "100.0", "+100.0"]
    described = after.described
    assert compare(before, after, Sheets(3), protocol, tmp_path, seed=0) == table
    assert after.described == described
