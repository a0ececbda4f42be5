import math

import torch

from pcreg.datasets.simulated.indoor.depth_camera import DepthCamera, Fusion

CAMERA = DepthCamera()


def fuse(depth, poses=None):
    B, K = depth.shape[:2]
    poses = torch.eye(4).expand(B, K, 4, 4) if poses is None else poses
    return Fusion().fragments(CAMERA, depth, poses, torch.Generator().manual_seed(0))


def wall(z=2.0, frames=2):
    return torch.full((1, frames, CAMERA.height, CAMERA.width), z)


def test_points_lie_within_a_voxel_of_the_measured_plane_and_cover_it():
    (points,) = fuse(wall())
    assert (points[:, 2] - 2).abs().max() < 0.006 + 1e-4
    extent = 2 * 2.0 * math.tan(math.radians(57 / 2))
    cells = torch.floor(points[:, :2] / 0.025).unique(dim=0)
    assert len(cells) > 0.97 * extent * extent * CAMERA.height / CAMERA.width / 0.025**2


def test_points_are_voxels_and_one_per_cell():
    (points,) = fuse(wall())
    steps = (points - torch.tensor([-1.5, -1.5, 0.5])) / 0.006
    assert (steps - steps.round()).abs().max() < 1e-2
    assert len(torch.floor(points / 0.025).unique(dim=0)) == len(points)


def test_a_pose_brings_images_together():
    """The second camera stands 10 cm further back, and measures 10 cm more."""
    depth = wall()
    depth[:, 1] += 0.1
    poses = torch.eye(4).repeat(1, 2, 1, 1)
    poses[0, 1, 2, 3] = -0.1
    (points,) = fuse(depth, poses)
    assert (points[:, 2] - 2).abs().max() < 0.0061


def test_what_is_missing_or_out_of_the_cube_leaves_nothing():
    depth = torch.cat([wall(0.0), wall(3.8), wall(2.0)])
    lengths = [len(points) for points in fuse(depth)]
    assert lengths[:2] == [0, 0]
    assert lengths[2] > 3000
