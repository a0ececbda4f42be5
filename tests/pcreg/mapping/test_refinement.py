import numpy as np
import pytest
from scipy.sparse import csr_array

from pcreg.geometry.normals import normals_of
from pcreg.geometry.se3 import inverse, rotation_about, rotation_error, se3, transform, translation_error
from pcreg.mapping.refinement import overlaps, partners, refine_jointly
from pcreg.mapping.submap import Scan
from pcreg.registration.clouds.local_frame import LocalFrame
from pcreg.registration.matching.screening import Keypoints

VOXEL = 0.05


def scan(points: np.ndarray) -> Scan:
    keypoints = Keypoints(points.astype(np.float32), np.ones((len(points), 4), np.float32), VOXEL)
    return Scan(LocalFrame(np.zeros(3), 1e-6), keypoints, points, normals_of(points, 3 * VOXEL)[0])


def corner(seed: int) -> np.ndarray:
    """Three walls at right angles, each 2 m wide, sampled anew: (3000, 3)."""
    rng = np.random.default_rng(seed)
    walls = rng.uniform(0, 2, (3, 1000, 3))
    for axis in range(3):
        walls[axis, :, axis] = 0
    return walls.reshape(-1, 3)


@pytest.fixture
def scene():
    """Four scans of a corner, their poses, and poses that are off by 2 cm and 1 degree."""
    rng = np.random.default_rng(5)
    poses = np.array(
        [np.eye(4)]
        + [se3(rotation_about(rng.standard_normal(3), 40), rng.uniform(-1, 1, 3)) for _ in range(3)]
    )
    scans = [scan(transform(inverse(pose), corner(seed))) for seed, pose in enumerate(poses)]
    rough = poses.copy()
    for row in range(1, 4):
        rough[row] = se3(rotation_about(rng.standard_normal(3), 1), rng.normal(0, 0.012, 3)) @ poses[row]
    return scans, poses, rough


def test_poses_that_are_nearly_right_become_right(scene):
    scans, poses, rough = scene
    found = refine_jointly(scans, rough, np.zeros(4, np.int64), VOXEL)
    np.testing.assert_array_equal(found[0], poses[0])
    for T, true, before in list(zip(found, poses, rough, strict=True))[1:]:
        assert translation_error(T, true) < min(0.004, translation_error(before, true) / 2)
        assert rotation_error(T, true) < 0.2


def test_maps_are_refined_apart(scene):
    """Two scans of either map; the second map is where the first one is, and does not see it."""
    scans, poses, rough = scene
    component = np.array([0, 0, 1, 1])
    found = refine_jointly(scans, rough, component, VOXEL)
    np.testing.assert_array_equal(found[[0, 2]], rough[[0, 2]])
    true = inverse(poses[2]) @ poses[3]
    assert translation_error(inverse(found[2]) @ found[3], true) < 0.005
    assert overlaps(scans, rough, component, VOXEL)[:2, 2:].nnz == 0


def test_scans_that_overlap_most_are_partners():
    shared = np.zeros((15, 15))
    shared[0, 1:] = shared[1:, 0] = np.linspace(0.2, 0.9, 14)
    shared[1, 2] = shared[2, 1] = 0.05
    pairs = partners(csr_array(shared))
    assert len(pairs) == 14  # each other scan has scan 0 alone
    assert (2, 1) not in pairs
