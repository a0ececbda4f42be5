"""Procedural LiDAR recordings: geometry with known answers."""

import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.outdoor.drive import Drive
from pcreg.datasets.simulated.outdoor.ground import Ground, Road
from pcreg.datasets.simulated.outdoor.lidar import sweeps
from pcreg.datasets.simulated.outdoor.lidar_models import SpinningLidar
from pcreg.datasets.simulated.outdoor.recording import KINDS, outdoor_scene
from pcreg.datasets.simulated.outdoor.site import Mover, Scene
from pcreg.datasets.simulated.solids import Solids, boxes
from pcreg.kernels.raycast import Shape

NOTHING_BELOW = np.full((2, 3), -100.0)
FINE = SpinningLidar(tuple(np.linspace(-20.0, 5.0, 16)), columns=64, far=60, noise=1e-4, min_return=1e-9)
NOTHING = boxes([])


def scene(solids: Solids = NOTHING, movers: tuple[Mover, ...] = (), ground: Ground | None = None) -> Scene:
    return Scene("test", ground or Ground(), solids, movers, (Road(),), relief=0.0)


def standing_still(n: int = 1, height: float = 1.5, **motion) -> Drive:
    T = np.tile(np.eye(4), (n, 1, 1))
    T[:, 2, 3] = height
    still = {"velocity": np.zeros((n, 3)), "spin": np.zeros((n, 3))}
    return Drive(T, np.arange(n, dtype=float), **{**still, **motion})


def generator() -> torch.Generator:
    return torch.Generator("cpu").manual_seed(0)


def test_beams_have_their_angles():
    (cloud,) = sweeps(scene(), FINE, standing_still(), NOTHING_BELOW, generator())
    seen = torch.rad2deg(torch.asin(cloud[:, 2] / cloud.norm(dim=1)))
    error = (seen[:, None] - torch.tensor(FINE.elevation)).abs().amin(1)
    assert error.max() < 0.25  # degrees: a unit's angles differ from the manual's


def test_slopes_waves_and_kerbs_are_met_where_their_height_says():
    ground = Ground(
        roads=(Road(half_width=4.0, curvature=0.01),),
        slope=(0.05, -0.03),
        waves=np.array([[0.5, 0.08, 0.05, 1.0], [0.03, 0.6, 0.2, 0.0]]),
        kerb=0.12,
    )
    drive = standing_still()
    drive.T_world_sensor[0, 2, 3] = 1.7 + ground.heights(np.zeros(1), np.zeros(1))[0]
    (cloud,) = sweeps(scene(ground=ground), FINE, drive, NOTHING_BELOW, generator())
    x, y, z = (cloud.double().numpy() + drive.T_world_sensor[0, :3, 3]).T
    error = np.abs(ground.heights(x, y) - z)
    assert len(cloud) > 400
    assert np.quantile(error, 0.95) < 0.02
    assert error.max() < 0.15


def test_a_mover_has_moved_by_its_speed():
    mover = Mover(boxes(-1, -1, 0, 1, 1, 3), Road(y=8.0), station=-6.0, offset=0.0, speed=3.0)
    clouds = sweeps(scene(movers=(mover,)), FINE, standing_still(3), NOTHING_BELOW, generator())
    middles = [cloud[(cloud[:, 1] > 6) & (cloud[:, 2] > -1.2)][:, 0].numpy() for cloud in clouds]
    for n, x in enumerate(middles):
        assert -6 + 3 * n - 1.1 < x.min() < x.max() < -6 + 3 * n + 1.1


def test_motion_is_removed_or_left_in_the_points():
    wall = boxes(10, -30, -1, 11, 30, 20)
    fast = {"velocity": np.array([[2.0, 0, 0]])}

    def error(distortion: float) -> float:
        drive = standing_still(**fast, distortion=distortion)
        (cloud,) = sweeps(scene(wall), FINE, drive, NOTHING_BELOW, generator())
        ahead = cloud[(cloud[:, 0] > 5) & (cloud[:, 2] > -1)]
        assert len(ahead) > 50
        return float((ahead[:, 0] - 10).abs().max())

    assert error(0.0) < 0.01
    assert 0.1 < error(1.0) < 1.0


def test_the_carrier_hides_the_ground_under_it_and_nothing_above():
    roof = np.array([[-2.0, -2.0, -1.0], [2.0, 2.0, -0.5]])
    walls = boxes(-30, -30, -5, 30, 30, 30)  # from within
    beams = SpinningLidar(
        (60.0, 20.0, 5.0, -5.0, -20.0, -60.0, -70.0, -80.0), columns=64, far=90, min_return=1e-9
    )
    (cloud,) = sweeps(scene(walls), beams, standing_still(), roof, generator())
    below, above = cloud[cloud[:, 2] < -1.3], cloud[cloud[:, 2] > 0]
    assert below[:, :2].abs().amax(1).min() > 3.9  # 2 m of roof 0.5 m below, ground 1.5 m below
    assert len(above) > 150


def test_who_stands_behind_the_sensor_hides_what_is_behind():
    person = np.array([[-0.8, -0.3, -2.0], [-0.5, 0.3, 0.5]])
    (cloud,) = sweeps(scene(), FINE, standing_still(), person, generator())
    (free,) = sweeps(scene(), FINE, standing_still(), NOTHING_BELOW, generator())
    angle, free = (torch.rad2deg(torch.atan2(c[:, 1], c[:, 0])).abs() for c in (cloud, free))
    assert angle.max() < 155 < 170 < free.max()
    assert ((angle < 140).sum() / (free < 140).sum()) > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_scene_has_a_free_way(kind: str):
    made = outdoor_scene(np.random.default_rng(5), kind)
    assert len(made.solids) > 50
    radius = 0.9 * made.radius
    x, y, _ = made.ways[0].at(np.linspace(-radius, radius, 91))
    T = np.linalg.inv(made.solids.T_world_unit)
    p = np.stack([x, y, made.ground.heights(x, y) + 1.0, np.ones(91)])
    boxes = made.solids.shape == Shape.BOX
    inside = (np.abs(T @ p)[:, :3] < 0.98).all(1) & boxes[:, None]
    assert inside.any(0).mean() < 0.1
