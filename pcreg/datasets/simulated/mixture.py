"""Recordings of all kinds, each scaled so that its voxel size is ROOM_VOXEL.

A network has no unit of length. The voxel size is the one at which a recording will be described: fixed for
rooms and streets, for other kinds near the choice of `pcreg.geometry.voxel_size`, as at inference.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.jagged import Jagged
from pcreg.datasets.simulated import indoor, objects, outdoor, terrestrial
from pcreg.datasets.simulated.draws import Device, by_share, log_uniform
from pcreg.datasets.simulated.recorded import Recorder, Recording
from pcreg.features.pretrained import ROOM_VOXEL, STREET_VOXEL
from pcreg.geometry.voxel_size import Sample

STEP = (5**0.5 - 1) / 2  # golden ratio: its multiples, modulo 1, are spread evenly
MIXTURE = 2  # third number of the seed of draws in this module

BEAMS = 0.5  # share of a LiDAR's beams that may be missing
AGAIN_SPARSE = 0.4  # share of the streets that one LiDAR records twice, then with every 2nd to 8th beam
SPACINGS = (0.02, 0.1)  # metres between points of sparse rooms
FACTORS = (0.75, 1.25)  # range of the voxel size, relative to the one that suits the clouds
FINE = 0.4  # voxels: spacing to which scans of terrestrial scanners are thinned
MIN_POINTS = 500  # of a cloud


def record(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Recording `index`, scaled to ROOM_VOXEL; any run of scenes has the kinds in proportion to SHARES."""
    return kind_of(index)(seed, index, device)


def kind_of(index: int) -> Recorder:
    """The function that records scene number `index`."""
    return by_share(SHARES, index * STEP % 1)


def rooms(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Fragments of rooms by one camera, or by two that differ; half of the recordings bend."""
    one, bends = _random(seed, index).random(2) < 0.5
    by = indoor.record if one else indoor.record_by_two
    return by(seed, index, device, bend=indoor.BEND if bends else 0.0)


def streets(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Streets and halls by two LiDARs, or by one with all and with few beams."""
    rng = _random(seed, index)
    by = partial(outdoor.record, again_sparse=True) if rng.random() < AGAIN_SPARSE else outdoor.record_by_two
    recording = by(seed, index, device)
    clouds = Jagged.of(recording.clouds)
    kept = clouds.take(Augmentation(beams=BEAMS).kept(clouds, rng).nonzero()[:, 0])
    usable = replace(recording, clouds=kept.split()).without_small(MIN_POINTS)
    return usable.scaled(ROOM_VOXEL / STREET_VOXEL)


def single_objects(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Scans of objects."""
    return _at_own_voxel(objects.record(seed, index, device), _random(seed, index))


def scanned_sites(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Scans of a terrestrial scanner."""
    recording = terrestrial.record(seed, index, device).without_small(MIN_POINTS)
    return _at_own_voxel(recording, _random(seed, index)).thinned(FINE * ROOM_VOXEL)


def few_beams(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Rooms and sites by a LiDAR of few beams that stands still, which no training has."""
    recording = terrestrial.record(seed, index, device, few_beams=True).without_small(MIN_POINTS)
    return _at_own_voxel(recording, _random(seed, index))


def sparse_rooms(seed: int, index: int, device: Device = "cpu") -> Recording:
    """Rooms as sparse as from phones and robots: even or random points, 2 to 10 cm apart."""
    rng = _random(seed, index)
    by = (indoor.record, indoor.record_by_two, indoor.record_scans)[rng.integers(3)]
    recording, spacing = by(seed, index, device), log_uniform(rng, *SPACINGS)
    sparse = recording.thinned(spacing)
    if rng.random() < 0.5:
        clouds = [
            cloud[torch.from_numpy(rng.permutation(len(cloud))[: len(thin)]).to(cloud.device)]
            for cloud, thin in zip(recording.thinned(spacing / 2).clouds, sparse.clouds, strict=True)
        ]
        sparse = replace(sparse, clouds=clouds)
    return _at_own_voxel(sparse.without_small(MIN_POINTS), rng, 0.05)


SHARES = {rooms: 0.32, streets: 0.42, single_objects: 0.1, scanned_sites: 0.08, sparse_rooms: 0.08}


def _random(seed: int, index: int) -> np.random.Generator:
    return np.random.default_rng([seed, index, MIXTURE])


def _at_own_voxel(recording: Recording, rng: np.random.Generator, least: float = 0.0) -> Recording:
    """Scale a recording: a voxel size that suits the sparsest of three clouds becomes ROOM_VOXEL."""
    clouds = recording.clouds
    some = [clouds[n] for n in sorted({0, len(clouds) // 2, len(clouds) - 1})] if clouds else []
    own = max((Sample.of(cloud.double(), "simulated").voxel() for cloud in some), default=ROOM_VOXEL)
    return recording.scaled(ROOM_VOXEL / max(least, own * rng.uniform(*FACTORS)))
