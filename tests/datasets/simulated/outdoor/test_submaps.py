import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.outdoor import record, record_by_two
from pcreg.datasets.simulated.outdoor.lidar import sweeps
from pcreg.datasets.simulated.outdoor.recording import submaps
from pcreg.datasets.simulated.recorded import Recording, ScenePairs
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import rotation_about, se3, transform
from tests.datasets.simulated.outdoor.test_outdoor import (
    FINE,
    NOTHING_BELOW,
    generator,
    scene,
    standing_still,
)
from tests.datasets.simulated.overlap import mean_overlap


@pytest.fixture
def drive():
    """Seven sweeps on flat ground, two metres and ten degrees from one to the next."""
    drive = standing_still(7)
    for n in range(7):
        drive.T_world_sensor[n] = se3(rotation_about([0, 0, 1], 10 * n), np.array([2.0 * n, 0, 1.5]))
    return drive


def test_submaps_lie_on_the_surface_and_take_every_sweep_once(drive):
    single = Recording(sweeps(scene(), FINE, drive, NOTHING_BELOW, generator()), drive.T_world_sensor)
    fused = submaps(np.random.default_rng(0), single)
    assert 2 <= len(fused.clouds) <= 4
    for cloud, T in zip(fused.clouds, fused.T_world_cloud, strict=True):
        assert cloud.dtype == torch.float32
        assert any(np.array_equal(T, each) for each in drive.T_world_sensor)
        world = transform(T, cloud.double().numpy())
        assert np.abs(world[:, 2]).max() < 0.02
    every, together = (
        np.concatenate(
            [transform(T, c.double().numpy()) for c, T in zip(made.clouds, made.T_world_cloud, strict=True)]
        )
        for made in (single, fused)
    )
    assert measured_overlap(every, together, np.eye(4), 0.45) == 1.0  # cells of 0.25 m at most


def test_pairs_of_a_scan_and_a_submap_lie_on_each_other(monkeypatch):
    monkeypatch.setattr("pcreg.datasets.simulated.outdoor.recording.SUBMAP_SHARE", 1.0)
    both, again = record_by_two(1, 0), record_by_two(1, 0)
    assert all(torch.equal(a, b) for a, b in zip(both.clouds, again.clouds, strict=True))
    scene = ScenePairs.of(both, 0.3, 0.3)
    assert len(scene.pairs) >= 4
    some = scene.pairs[:: max(1, len(scene.pairs) // 12)]
    pairs = [sorted(pair, key=lambda n: len(both.clouds[n])) for pair in some]  # overlap is of the smaller
    assert mean_overlap(both, pairs, 0.3) > max(0.3, 1.5 * mean_overlap(both, pairs, 0.3, shift=1.0))


def test_sweeps_follow_again_from_the_same_places_with_fewer_beams():
    again = record(3, 0, kind="hall", again_sparse=True)
    count = len(again.clouds) // 2
    assert 10 <= count <= 20
    assert all(cloud.isfinite().all() and len(cloud) > 1000 for cloud in again.clouds[:count])
    np.testing.assert_array_equal(again.T_world_cloud[:count], again.T_world_cloud[count:])
    for whole, sparse in zip(again.clouds[:count], again.clouds[count:], strict=True):
        assert len(whole) / 10 < len(sparse) < 0.6 * len(whole)
