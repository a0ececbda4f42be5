import numpy as np

from pcreg.geometry.normals import normals_of
from pcreg.mapping.submap import Scan, most_overlapping, overlaps
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.matching.screening import Keypoints
from tests.pcreg.registration.test_icp import corner

VOXEL = 0.05


def scan(points: np.ndarray) -> Scan:
    keypoints = Keypoints(points.astype(np.float32), np.ones((len(points), 4), np.float32), VOXEL)
    return Scan(LocalFrame(np.zeros(3), 1e-6), keypoints, points, normals_of(points, 3 * VOXEL)[0])


def test_overlap_is_a_share_of_the_smaller_scan_within_a_map():
    """Two scans of a corner and half of one, in one map; a fourth, in the same place, in another."""
    clouds = [corner(3000, seed) for seed in range(4)]
    clouds[2] = clouds[2][clouds[2][:, 0] < 1]
    scans, poses = list(map(scan, clouds)), np.tile(np.eye(4), (4, 1, 1))
    shared = overlaps(scans, poses, np.array([0, 0, 0, 1]), VOXEL)
    assert shared[0, 1] > 0.9
    assert shared[0, 2] > 0.9
    assert shared[[3]].nnz == 0
    poses[1, 0, 3] = 1.0  # half of it is left
    assert 0.2 < overlaps(scans, poses, np.zeros(4, np.int64), VOXEL)[0, 1] < 0.7
    assert most_overlapping(shared, 0, 1, 0.5) == [int(shared[[0]].toarray().argmax())]
    assert sorted(most_overlapping(shared, 0, 9, 0.5)) == [1, 2]
    assert most_overlapping(shared, 3, 9, 0.0) == []
