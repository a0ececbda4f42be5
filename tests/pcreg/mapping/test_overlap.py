import numpy as np

from pcreg.geometry.normals import normals_of
from pcreg.geometry.se3 import se3
from pcreg.mapping.placement import Placement
from pcreg.mapping.submap import Scan, most_overlapping, overlaps
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.matching.screening import Keypoints
from tests.pcreg.mapping.edges import edge
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


def test_scans_are_around_one_another_that_up_to_two_edges_join():
    scans = [scan(corner(1000, seed)) for seed in range(4)]
    chain = [edge(row + 1, row, np.eye(4)) for row in range(3)]
    placement = Placement(scans, np.tile(np.eye(4), (4, 1, 1)), np.zeros(4, np.int64), chain, VOXEL)
    assert sorted(placement.around(0)) == [1, 2]


def test_a_place_is_the_mean_of_motions_by_their_confidence():
    scans, poses = [scan(corner(1000, seed)) for seed in range(2)], np.tile(np.eye(4), (2, 1, 1))
    placement = Placement(scans, poses, np.arange(2), [], VOXEL)
    likely = (0.0, 0.9), (0.04, 0.3), (6.1 * VOXEL, 0.2), (5.9 * VOXEL, 1e-9)
    place, other = placement.places([edge(1, 0, se3(np.eye(3), [x, 0, 0]), sure) for x, sure in likely])
    assert (len(place), len(other)) == (3, 1)
    np.testing.assert_allclose(placement._mean(place), se3(np.eye(3), [0.01, 0, 0]), atol=1e-9)
