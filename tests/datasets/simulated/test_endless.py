import numpy as np
import pytest
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.preparation import Preparation
from pcreg.datasets.simulated.endless import Endless
from pcreg.datasets.simulated.recorded import Recording, ScenePairs
from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.kernels.pyramid import PyramidConfig
from pcreg.runtime.distributed import Ranks
from tests.kernels.clouds import needs_gpu
from tests.pcreg.scenes import wavy_sheet

VOXEL = 0.05
made = []


def record(seed, index, device):
    """A wavy sheet seen three times: whole, turned, and its far end alone."""
    made.append(index)
    sheet = wavy_sheet(3000, seed=1000 * seed + index)
    poses = [np.eye(4), se3(rotation_about([0, 0, 1], 40), np.array([0.5, 0, 0])), np.eye(4)]
    seen = [sheet, sheet, sheet[sheet[:, 0] > np.quantile(sheet[:, 0], 0.8)]]
    clouds = [transform(np.linalg.inv(T), points) for T, points in zip(poses, seen, strict=True)]
    return Recording([torch.from_numpy(cloud).float().to(device) for cloud in clouds], np.array(poses))


def endless(**settings):
    preparation = Preparation(VOXEL, Augmentation(), 1.5 * VOXEL)
    settings = {"batch_size": 2, "per_epoch": 4, "pool": 2, "renew_every": 2} | settings
    return Endless(record, preparation, PyramidConfig(VOXEL, stem_kernel_size=3), **settings)


def test_pairs_need_enough_overlap():
    recording = record(0, 0, "cpu")
    pairs = ScenePairs.of(recording, 0.05, 0.05).pairs.tolist()
    assert sorted(pairs) == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    recording.T_world_cloud[2, 2, 3] = 100  # now the third one is far away
    assert ScenePairs.of(recording, 0.05, 0.05).pairs.tolist() == [[0, 1], [1, 0]]


def test_every_overlap_is_as_likely_as_another_and_either_direction():
    pairs = np.array([(n, n + 1) for n in range(9)] + [(20, 21), (21, 20)])
    scene = ScenePairs(None, pairs, np.array([0.2] * 9 + [0.8] * 2), np.empty((0, 2), int))
    rng = np.random.default_rng(0)
    drawn = [scene.draw(rng) for _ in range(300)]
    assert 100 < sum(source >= 20 for source, _ in drawn) < 200
    assert set(drawn) == {tuple(pair) for pair in pairs.tolist()}


def test_a_resumed_training_sees_the_same_batches():
    whole = endless()
    batches = [batch for epoch in range(2) for batch in whole.epoch(epoch)]
    rest = list(endless().epoch(1, first=2))
    for a, b in zip(batches[6:], rest, strict=True):
        assert a.names == b.names
        assert torch.equal(a.matches, b.matches)
        assert torch.equal(a.pyramid.points, b.pyramid.points)


def test_the_oldest_scene_makes_way_for_a_new_one_and_ranks_see_different_ones():
    made.clear()
    batches = endless()
    list(batches.epoch(0))
    assert made == [0, 1, 2]
    list(batches.epoch(1))
    assert made == [0, 1, 2, 3, 4]
    made.clear()
    for rank in range(2):
        next(endless(pool=1, ranks=Ranks(rank, 2)).epoch(0))
    assert made == [0, 1]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
@pytest.mark.parametrize("workers", [1, 3])
def test_workers_make_the_same_batches(device, workers):
    here, there = (endless(pool=3, workers=n, ranks=Ranks(device=device)) for n in (0, workers))
    for a, b in zip(here.epoch(1, first=1), there.epoch(1, first=1), strict=True):
        assert a.names == b.names
        assert len(a.matches) > 500
        assert torch.equal(a.matches, b.matches)
        assert torch.equal(a.to(device).pyramid.stem, b.to(device).pyramid.stem)


def test_rotations_grow_apart():
    batches = endless(max_relative_rotation=10.0, rotation_warmup=4)
    found = [batches._preparation(epochs).augment.max_relative_rotation for epochs in (0, 2, 4, 9)]
    assert found == [10, 95, 180, 180]
