import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.solids import Solids, balls, boxes, cast, cones, rods
from pcreg.geometry.se3 import random_rotation, se3


def first_meeting(solids, origin, direction, far=100.0):
    origin, direction = (torch.tensor(v, dtype=torch.float32).view(1, 1, 3) for v in (origin, direction))
    hits = cast(solids, origin, direction / direction.norm(), far)
    return hits.distance.item(), hits.cosine.item(), hits.solid.item()


@pytest.mark.parametrize(
    ("solid", "distance", "cosine"),
    [
        (boxes(4, -1, -1, 6, 1, 1), 4, 1),
        (balls(5, 0, 0, 1, 1, 1), 4, 1),
        (balls(5, 0, 0, 2, 1, 1), 3, 1),
        (balls(5, 0.6, 0, 1, 1, 1), 5 - 0.8, 0.8),
        (rods(1, 5, 0, -1, 5, 0, 1), 4, 1),
        (rods(1, 4, 0, 0, 6, 0, 0), 4, 1),
        (cones(1, 4, 0, 0, 6, 0, 0), 4, 1),
        (cones(1, 5, 0, -1, 5, 0, 1), 4.5, 2 / 5**0.5),
    ],
)
def test_a_ray_along_x_meets_each_shape_where_it_must(solid, distance, cosine):
    t, c, which = first_meeting(solid, (0, 0, 0), (1, 0, 0))
    assert (t, c, which) == (pytest.approx(distance, abs=1e-4), pytest.approx(cosine, abs=1e-3), 0)


def test_misses_and_what_is_too_far_or_behind_is_infinite():
    wall = boxes(4, -1, -1, 6, 1, 1)
    assert first_meeting(wall, (0, 0, 0), (0, 1, 0)) == (np.inf, 0, -1)
    assert first_meeting(wall, (0, 0, 0), (-1, 0, 0)) == (np.inf, 0, -1)
    assert first_meeting(wall, (0, 0, 0), (1, 0, 0), far=3.9) == (np.inf, 0, -1)


def test_the_nearer_of_two_shapes_wins():
    scene = Solids.join(boxes(6, -1, -1, 7, 1, 1), balls(4, 0, 0, 1, 1, 1), rods(0.5, 9, 0, -1, 9, 0, 1))
    assert first_meeting(scene, (0, 0, 0), (1, 0, 0))[::2] == (pytest.approx(3, abs=1e-4), 1)
    assert first_meeting(scene, (20, 0, 0), (-1, 0, 0))[2] == 2


def test_moving_scene_and_rays_together_changes_nothing():
    rng = np.random.default_rng(0)
    scene = random_scene(rng, 40)
    T = se3(random_rotation(rng), rng.uniform(-3, 3, 3))
    directions = torch.nn.functional.normalize(
        torch.randn(8, 50, 3, generator=torch.Generator().manual_seed(0)), dim=-1
    )
    R = torch.from_numpy(T[:3, :3]).float()
    still = cast(scene, torch.zeros(8, 50, 3), directions, 50.0)
    origin = torch.from_numpy(T[:3, 3]).float().expand(8, 50, 3)
    moved = cast(scene.placed(T), origin, directions @ R.T, 50.0)
    same = still.solid == moved.solid
    assert same.float().mean() > 0.99  # a ray along an edge may go either way
    torch.testing.assert_close(still.distance[same], moved.distance[same], atol=2e-3, rtol=1e-3)


def test_solids_that_are_absent_are_not_met():
    walls = Solids.join(boxes(1, -5, -5, 1.1, 5, 5), boxes(2, -5, -5, 2.1, 5, 5))
    directions = torch.tensor([1.0, 0, 0]).expand(2, 3, 3)
    present = torch.tensor([[True, True], [False, True]])
    hits = cast(walls, torch.zeros(2, 1, 3), directions, far=10.0, present=present)
    assert hits.solid.tolist() == [[0, 0, 0], [1, 1, 1]]
    torch.testing.assert_close(hits.distance[:, 0], torch.tensor([1.0, 2.0]))
    assert (hits.cosine == 1).all()


def random_scene(rng, count):
    makers = [
        lambda s: boxes(*-s, *s),
        lambda s: balls(0, 0, 0, *s),
        lambda s: rods(s[0], 0, 0, 0, 0, 0.3, s[1]),
        lambda s: cones(s[0], 0, 0, 0, 0, 0, s[1]),
    ]
    places = [se3(random_rotation(rng), rng.uniform(-4, 4, 3)) for _ in range(count)]
    return Solids.join(*(makers[n % 4](rng.uniform(0.1, 0.6, 3)).placed(T) for n, T in enumerate(places)))
