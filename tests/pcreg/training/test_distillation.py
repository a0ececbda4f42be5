import numpy as np
import pytest
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.collate import Batches, TrainingPairs
from pcreg.datasets.preparation import Preparation
from pcreg.runtime.errors import InputError
from pcreg.training.distillation import distillation_loss, teacher_descriptors
from pcreg.training.trainer import Trainer
from tests.pcreg.tiny import VOXEL, Sheets, architecture, network

STILL = Augmentation(rotate=False, scale=(1.0, 1.0), jitter=0.0)


def batches(augment: Augmentation = STILL, views: int = 2, scales: tuple[float, ...] = (1.0, 2.0)) -> Batches:
    preparation = Preparation(VOXEL, augment, 1.5 * VOXEL, scales=scales, views=views)
    return Batches(TrainingPairs(Sheets(2), preparation), architecture().geometry, 2)


def test_targets_are_the_mean_over_views_of_each_scale():
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.6, -0.8]])
    taught = teacher_descriptors(
        features, torch.tensor([[[0, 2], [1, 3]]])
    )  # one point, two views, two scales
    half = 0.5**0.5  # each scale is of length sqrt(1 / 2)
    assert taught[0].tolist() == pytest.approx([half * half, half * half, half, 0.0])


def test_the_loss_is_one_less_the_cosine():
    own = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert distillation_loss(own, own).item() == 0
    assert distillation_loss(own, -own).item() == 2
    assert distillation_loss(own, own.flip(1)).item() == 1


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 2.0)])
def test_views_are_other_points_of_the_same_surface(scales):
    """Each point is described, in each view at each scale, by a point of the cell that both are in."""
    batch = next(batches(scales=scales).epoch(0))
    sides, views = batch.pyramid.groups(0), batch.views.levels[0]
    in_frame = views.points - views.viewpoints  # in metres, or in units of a scale
    first = []
    for side in sides:  # the points of the first scale
        of_pairs = slice(side.lengths[:2].sum())
        first.append(side.points[of_pairs] - side.viewpoints[of_pairs])
    own = torch.cat(first)
    assert batch.view_rows.shape == (len(own), 2, len(scales))
    for number, scale in enumerate(scales):
        seen = in_frame[batch.view_rows[:, :, number]] * scale
        away = (seen - own[:, None]).norm(dim=2)
        assert away.max() <= 1.01 * 3**0.5 * VOXEL * (1 + (scale > 1) * scale)
        assert (away > 0.1 * VOXEL).float().mean() > 0.3  # other points, for the most part


def test_without_views_a_batch_is_what_it_was():
    with_views, without = (next(batches(views=views).epoch(0)) for views in (2, 0))
    assert without.views is None
    assert torch.equal(with_views.pyramid.levels[0].points, without.pyramid.levels[0].points)


def test_a_teacher_that_stands_still_is_agreed_with(tmp_path):
    """Taught nothing else, the network comes to give from one thinning what the teacher makes of others."""

    def nothing(source, target, batch, generator):
        return {"total": 0 * (source.sum() + target.sum())}

    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    trainer = Trainer(net, optimizer, tmp_path, loss=nothing, ema=0.999999, distillation=1.0)
    (batch,) = batches().epoch(0)
    found = [trainer._step(batch).read()["loss/total"] for _ in range(30)]
    assert np.mean(found[-5:]) < 0.5 * found[0]


def test_a_teacher_is_an_averaged_network(tmp_path):
    net = network()
    with pytest.raises(InputError, match="distillation needs ema"):
        Trainer(net, torch.optim.SGD(net.parameters()), tmp_path, distillation=1.0)
