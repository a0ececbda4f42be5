import numpy as np
import pytest
import torch

from datasets.augment import Augmentation
from datasets.collate import Batches, TrainingPairs
from datasets.preparation import Preparation
from datasets.scaled_clouds import nearest_rows, scaled_clouds
from pcreg.batch import PointBatch
from pcreg.errors import InputError
from pcreg.fcgf import FCGF
from tests.pcreg.tiny import VOXEL, Sheets, architecture, network

SCALES = (1.0, 1.4, 2.0)


def line(*x: float) -> torch.Tensor:
    return torch.tensor([[value, 0.0, 0.0] for value in x], dtype=torch.float64)


def test_clouds_come_scale_by_scale_in_units_of_their_scale():
    clouds = [line(0, 1, 2), line(5, 6)]
    coarser = [[torch.tensor([0, 2])], [torch.tensor([1])]]
    every, rows = scaled_clouds(clouds, coarser, (1.0, 2.0))
    assert [cloud[:, 0].tolist() for cloud in every] == [[0, 1, 2], [5, 6], [0, 1], [3]]
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert rows[[0, 2, 3, 4], 1].tolist() == [5, 6, 7, 7]
    assert rows[1, 1] in (5, 6)  # halfway between both


def test_the_nearest_row_is_found_far_from_zero():
    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.uniform(1000, 1001, (300, 3)))
    among = points[::3]
    away = (points[:, None] - among).norm(dim=-1)
    assert torch.equal(nearest_rows(points, among), away.argmin(1))


def test_training_joins_what_the_descriptor_joins():
    """On a cloud that is neither turned nor shaken: the same rows, scales and lengths as FCGF in use."""
    augment = Augmentation(rotate=False, scale=(1.0, 1.0), jitter=0.0)
    sheets, net = Sheets(1), network().eval()
    preparation = Preparation(VOXEL, augment, 1.5 * VOXEL, scales=SCALES)
    batch = next(Batches(TrainingPairs(sheets, preparation), architecture().geometry, 1).epoch(0))
    assert isinstance(batch.source.levels[0], PointBatch)
    with torch.no_grad():
        source, target = batch.joined(net(batch.source), net(batch.target))
    for features, name in ((source, "0/source"), (target, "0/target")):
        described = FCGF(net, scales=SCALES).describe(sheets.cloud(name)).features
        assert features.norm(dim=1).numpy() == pytest.approx(1)
        # Clouds divided by their scale fall into other last digits, and a few neighbours over an edge.
        assert np.isclose(features.numpy(), described, atol=1e-4).all(1).mean() > 0.9


def test_one_scale_leaves_a_batch_as_it_was():
    preparation = Preparation(VOXEL, Augmentation(), 1.5 * VOXEL)
    batch = next(Batches(TrainingPairs(Sheets(2), preparation), architecture().geometry, 2).epoch(0))
    assert batch.source_rows is None
    assert len(batch.source.levels[0].lengths) == 2


@pytest.mark.parametrize("scales", [(1.4, 2.0), (1.0, 0.7), (), (1.0, float("inf"))])
def test_scales_start_with_one_and_grow(scales):
    with pytest.raises(InputError, match="give 1 first and then larger ones"):
        Preparation(VOXEL, Augmentation(), 1.5 * VOXEL, scales=scales)


def test_a_network_on_voxels_sees_one_scale():
    with pytest.raises(InputError, match="snap=true"):
        Preparation(VOXEL, Augmentation(), 1.5 * VOXEL, snap=True, scales=SCALES)
