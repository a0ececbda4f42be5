"""Patterns of solid-state LiDARs: where they look, how that grows with time, and what they measure."""

import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.outdoor.lidar import sweeps
from pcreg.datasets.simulated.outdoor.lidar_models import GROUP, SOLID_STATE_LIDARS
from pcreg.datasets.simulated.solids import boxes
from tests.datasets.simulated.outdoor.test_outdoor import NOTHING_BELOW, generator, scene, standing_still

MODELS = list(SOLID_STATE_LIDARS)


def angles(rays: torch.Tensor) -> torch.Tensor:
    """Azimuth and elevation (..., 2) in degrees."""
    return torch.rad2deg(torch.stack([torch.atan2(rays[..., 1], rays[..., 0]), torch.asin(rays[..., 2])], -1))


def cells(model: str, seconds: float) -> set[tuple[int, int]]:
    """Cells of a degree at which a sweep of so many seconds looks."""
    rays, _ = SOLID_STATE_LIDARS[model].with_seconds(seconds, 10**6).rays(1, generator())
    return set(map(tuple, angles(rays).floor().reshape(-1, 2).int().tolist()))


@pytest.mark.parametrize("model", MODELS)
def test_the_pattern_fills_its_field_with_time(model):
    lidar = SOLID_STATE_LIDARS[model]
    seen = [len(cells(model, seconds)) for seconds in (0.05, 0.1, 0.2, 0.4)]
    low, high = lidar.vertical
    square = lidar.horizontal * (high - low)
    whole = square if lidar.horizontal == 360 else np.pi / 4 * square
    assert seen == sorted(seen)
    assert seen[3] > 1.15 * seen[1]
    assert 0.5 * whole < seen[3] < 1.1 * whole


@pytest.mark.parametrize("model", MODELS)
def test_rays_stay_in_the_field(model):
    lidar = SOLID_STATE_LIDARS[model]
    rays, moment = lidar.rays(3, generator())
    azimuth, elevation = angles(rays).unbind(-1)
    assert (rays.shape[0], *rays.shape[2:]) == (3, GROUP, 3)
    assert torch.equal(moment.unique(), torch.arange(lidar.moments))
    assert rays.shape[1] * GROUP == pytest.approx(lidar.rate * lidar.seconds, rel=0.05)
    assert (rays.norm(dim=-1) - 1).abs().max() < 1e-5
    assert lidar.vertical[0] - 0.01 < elevation.min() < elevation.max() < lidar.vertical[1] + 0.01
    assert azimuth.abs().max() < lidar.horizontal / 2 + 0.01
    assert azimuth.max() - azimuth.min() > 0.95 * lidar.horizontal


def test_it_measures_what_stands_in_its_field():
    wall = boxes(10, -30, -1, 11, 30, 20)
    for model in MODELS:
        (cloud,) = sweeps(
            scene(wall), SOLID_STATE_LIDARS[model], standing_still(), NOTHING_BELOW, generator()
        )
        ahead = cloud[(cloud[:, 0] > 5) & (cloud[:, 2] > -1)]
        assert len(ahead) > 500
        assert (ahead[:, 0] - 10).abs().median() < 0.04
