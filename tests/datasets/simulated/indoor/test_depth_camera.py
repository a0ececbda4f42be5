import math
from itertools import islice

import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.indoor.depth_camera import BASELINE, FOCAL, STEP, DepthCamera, Fusion
from pcreg.datasets.simulated.solids import Solids, boxes

CAMERA = DepthCamera()
PERFECT = DepthCamera(noise=0.0, distortion=0.0, wander=0.0)
WALL = boxes(-9, -9, 2, 9, 9, 2.1)  # two metres before a camera at the origin


def images(camera, solids, frames=1, seed=0):
    return camera.depth(solids, torch.eye(4).expand(frames, 4, 4), torch.Generator().manual_seed(seed))


def seeds_that_see(camera, solids, count):
    made = (images(camera, solids, seed=seed) for seed in range(100))
    return list(islice((image for image in made if (image > 0).float().mean() > 0.5), count))


def test_a_wall_is_where_it_is_within_a_step_of_disparity():
    (image,) = seeds_that_see(PERFECT, WALL, 1)
    step = 2.0**2 / (FOCAL * BASELINE) * STEP
    assert (image > 0).float().mean() > 0.98
    assert (image[image > 0] - 2).abs().max() < step
    assert len(image[image > 0].unique()) == 1


def test_rays_span_the_field_of_view():
    rays = DepthCamera().rays("cpu")
    edge = np.degrees(np.arctan(rays[0, :, 0].numpy()))
    assert rays.shape == (120, 160, 3)
    assert edge[-1] - edge[0] == pytest.approx(57, abs=0.5)
    assert np.degrees(2 * np.arctan(rays[-1, 0, 1].item())) == pytest.approx(44, abs=0.7)


def test_noise_grows_with_the_square_of_the_depth():
    camera = DepthCamera(distortion=0.0, wander=0.0, noise=0.5)
    spreads = []
    for depth in (1.0, 3.0):
        image = seeds_that_see(camera, WALL.placed(np.diag([1, 1, depth / 2, 1])), 1)[0]
        spreads.append(image[image > 0].std().item() / depth**2)
    assert spreads[1] == pytest.approx(spreads[0], rel=0.15)
    assert spreads[0] == pytest.approx(0.5 / (FOCAL * BASELINE), rel=0.4)


def test_out_of_range_and_grazing_is_missing():
    assert not images(PERFECT, boxes(-9, -9, 0.2, 9, 9, 0.3)).any()
    assert not images(PERFECT, boxes(-9, -9, 5, 9, 9, 6)).any()
    floor = boxes(-9, 0.05, -9, 9, 0.1, 9)  # five centimetres below the lens
    assert (images(PERFECT, floor) > 0).float().mean() < 0.2


def test_the_projector_casts_a_shadow_on_one_side():
    board = boxes(-0.3, -9, 1, 0.3, 9, 1.02)
    far = [image for image in seeds_that_see(PERFECT, Solids.join(board, WALL), 5) if (image > 1.5).any()]
    row = (far[0][0, 60] == 0).nonzero().squeeze(1)
    middle = (PERFECT.width - 1) / 2
    width = PERFECT.focal * BASELINE * (1 / 1 - 1 / 2)
    assert len(row) == pytest.approx(width, abs=3)
    assert (row < middle).all() or (row > middle).all()


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
