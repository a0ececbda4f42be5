"""Maps held against poses that are known."""

import numpy as np

from benchmarks.map_scores import rows
from pcreg.geometry.se3 import inverse, rotation_about, se3
from pcreg.mapping.map import Map, MapEdge


def test_scans_and_pairs_are_held_against_their_poses(tmp_path):
    """Of four scans in a map of another frame one is misplaced, by a pair that is wrong; one is alone."""
    poses = np.array([se3(rotation_about([0, 0, 1], 20 * n), np.array([n, 0.0, 0.0])) for n in range(5)])
    (tmp_path / "scene").mkdir()
    paths = [tmp_path / "scene" / f"cloud_bin_{n}.ply" for n in range(5)]
    for path, pose in zip(paths, poses, strict=True):
        np.savetxt(path.with_suffix(".info.txt"), pose, header="scene seq 0 49", comments="")
    placed = se3(rotation_about([1, 0, 0], 50), np.array([3.0, 2.0, 1.0])) @ poses
    placed[3, 0, 3] += 0.5
    used = [(1, 0), (2, 1), (3, 2)]
    edges = [MapEdge(a, b, True, 0.99, "", inverse(placed[b]) @ placed[a], True, "") for a, b in used]
    found = Map(tuple(map(str, paths)), ("",) * 5, placed, np.array([1, 1, 1, 1, 0]), tuple(edges), 0.05)
    one, none = rows(found, paths, 2.0)
    assert one["median m"] < 1e-6
    assert {key: one[key] for key in ("scans", "placed", "pairs used", "wrong", "of")} == {
        "scans": 4,
        "placed": 3,
        "pairs used": 3,
        "wrong": 1,
        "of": "4 scene",
    }
    assert none == {"map": "none", "scans": 1}
