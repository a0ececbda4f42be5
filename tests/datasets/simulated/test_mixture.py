"""Kinds of scenes in one unit: each as it is described, and all of them beside one another."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from pcreg.datasets.simulated import indoor, objects, outdoor, terrestrial
from pcreg.datasets.simulated.indoor.recording import WIDE
from pcreg.datasets.simulated.mixture import SHARES, few_beams, kind_of, record, single_objects
from pcreg.datasets.simulated.outdoor import recording
from pcreg.datasets.simulated.recorded import ScenePairs
from pcreg.features.pretrained import ROOM_VOXEL
from pcreg.geometry.se3 import transform
from pcreg.registration.matching.nearest import match_all


@pytest.fixture(autouse=True)
def few_clouds(monkeypatch):
    """Recordings of a few clouds each, which take a second."""
    monkeypatch.setattr(objects, "VIEWS", (3, 3))
    monkeypatch.setattr(terrestrial, "STATIONS", (2, 2))
    monkeypatch.setattr(terrestrial, "ROWS", (96,))
    monkeypatch.setattr(terrestrial, "COLUMNS", (256,))
    hall = partial(outdoor.record, kind="hall")
    for name in ("record", "record_by_two"):
        monkeypatch.setattr(outdoor, name, hall)
    monkeypatch.setattr(recording, "LIDARS", dict.fromkeys(recording.LIDARS, recording.LIDARS["VLP-16"]))
    scans = partial(indoor.record_scans, scans=3, camera=replace(WIDE, width=208, height=156))
    for name in ("record", "record_by_two", "record_scans"):
        monkeypatch.setattr(indoor, name, lambda *arguments, bend=0.0: scans(*arguments))


@pytest.mark.parametrize("kind", [*SHARES, few_beams], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("index", range(2))
def test_a_recording_repeats_and_its_clouds_are_voxels_apart_and_overlap(kind, index):
    recording, again = (kind(3, index) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(recording.clouds, again.clouds, strict=True))
    assert not torch.equal(recording.clouds[0], kind(4, index).clouds[0])
    scene = ScenePairs.of(recording, ROOM_VOXEL, 0.05)
    overlap, (source, target) = scene.overlap.max(), scene.pairs[scene.overlap.argmax()].tolist()
    assert overlap > 0.1
    T, cloud = recording.motion(source, target), recording.clouds[source].double().numpy()
    at, others = transform(T, cloud), recording.clouds[target].double().numpy()
    off = np.linalg.norm(at - others[match_all(at, others).one_way[:, 1]], axis=1)
    assert (off < 2 * ROOM_VOXEL).mean() > 0.5 * overlap * min(1, len(others) / len(cloud))
    for points in (cloud, others):
        assert 300 < len(np.unique(np.floor(points / ROOM_VOXEL), axis=0)) < 100_000
        assert 40 < np.linalg.norm(np.ptp(points, axis=0)) / ROOM_VOXEL < 4000


def test_objects_have_the_sizes_of_objects():
    sizes = [float(np.ptp(objects.record(2, n).clouds[0].numpy(), axis=0).max()) for n in range(6)]
    assert 0.06 < 3 * min(sizes) < max(sizes) < 5


def test_terrestrial_scans_are_denser_near_the_scanner():
    for index in range(2):
        distance = terrestrial.record(1, index).clouds[0].norm(dim=1)
        near, far = distance.quantile(0.2), distance.quantile(0.8)
        assert (distance < near).float().mean() / near**2 > (distance < far).float().mean() / far**2
        assert distance.max() < 81


def test_every_run_of_scenes_has_all_kinds_in_their_shares():
    """Two workers take every second scene each."""
    for start in (0, 501):
        kinds = [kind_of(index) for index in range(start, start + 200, 2)]
        assert set(kinds[:20]) == set(SHARES)
        assert all(abs(Counter(kinds)[kind] - 100 * share) < 5 for kind, share in SHARES.items())
    index = next(n for n in range(20) if kind_of(n) is single_objects)
    assert torch.equal(record(2, index).clouds[0], single_objects(2, index).clouds[0])


def test_an_object_too_thin_for_any_scan_has_no_pairs():
    cord = single_objects(1, 1)
    assert not cord.clouds
    assert len(ScenePairs.of(cord, 0.05, 0.1).pairs) == 0
