import numpy as np
import pytest
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.collate import Batches, TrainingPairs
from pcreg.datasets.jagged import Jagged
from pcreg.datasets.preparation import Preparation, matching_rows
from pcreg.io.pairs import Pair
from pcreg.kernels.pyramid import PyramidConfig
from pcreg.runtime.distributed import Ranks
from pcreg.runtime.errors import InputError
from tests.pcreg.tiny import VOXEL, Sheets, T, batches


def preparation(augment=None):
    return Preparation(VOXEL, augment or Augmentation(), 1.5 * VOXEL)


def test_matches_are_all_rows_within_the_radius():
    source = torch.tensor([[0.0, 0, 0], [1, 0, 0]])
    target = torch.tensor([[0.05, 0, 0], [0, 0.09, 0], [5, 5, 5]])
    moved = Jagged.of([source + 1, source]), Jagged.of([target + 1, target[1:]])
    first, second = matching_rows(*moved, 0.1)
    assert first.tolist() == [[0, 0], [0, 1]]
    assert second.tolist() == [[0, 0]]


def test_a_sample_is_thinned_and_its_matches_are_true():
    sample = TrainingPairs(Sheets(), preparation(Augmentation(rotate=False)))[0, 1]
    moved = sample.source[sample.matches[:, 0]].numpy() @ T[:3, :3].T + T[:3, 3]
    assert len(sample.matches) > 100
    assert np.linalg.norm(moved - sample.target[sample.matches[:, 1]].numpy(), axis=1).max() <= 1.5 * VOXEL
    assert len(sample.source) < 1500


def test_batches_number_rows_over_all_their_clouds():
    batch = next(batches().epoch(0)).to("cpu")
    assert len(batch.names) == 2
    source, target = batch.pyramid.groups(0)
    first_source = source.lengths[0]
    second = batch.matches[batch.matches[:, 0] >= first_source]
    assert 0 < len(second) < len(batch.matches)
    assert (second[:, 1] >= target.lengths[0]).all()
    assert batch.matches[:, 0].max() < len(source)


def fingerprint(batch):
    return batch.names, batch.pyramid.points, batch.pyramid.lengths, batch.matches


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_can_be_joined_midway(workers):
    whole = list(batches(batch_size=1).epoch(3))
    rest = list(batches(batch_size=1, workers=workers).epoch(3, first=2))
    for a, b in zip(whole[2:], rest, strict=True):
        for x, y in zip(fingerprint(a), fingerprint(b), strict=True):
            assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y


class WithoutOverlap(Sheets):
    """Every second pair has nothing in common."""

    def __init__(self):
        super().__init__()
        far = np.eye(4)
        far[0, 3] = 100.0
        self.pairs[1] = Pair("1/source", "1/target", far)
        self.pairs[3] = Pair("3/source", "3/target", far)


def test_pairs_without_matches_are_left_out_by_name():
    epoch = list(batches(WithoutOverlap(), batch_size=4).epoch(0))
    assert sorted(epoch[0].left_out) == ["1/source->1/target", "3/source->3/target"]
    assert len(epoch[0].names) == 2


def test_a_batch_of_nothing_is_none():
    epoch = list(batches(WithoutOverlap(), batch_size=1).epoch(0))
    assert sum(batch is None for batch in epoch) == 2


@pytest.mark.parametrize("size", [0, 5])
def test_a_batch_size_that_cannot_be_is_refused(size):
    with pytest.raises(InputError, match="between 1 and 4"):
        Batches(Sheets(), preparation(), PyramidConfig(), batch_size=size)


def test_processes_share_the_pairs():
    samples = Sheets(), preparation(), PyramidConfig()
    with pytest.raises(InputError, match="4 pairs for 2 processes; take between 1 and 2"):
        Batches(*samples, batch_size=3, ranks=Ranks(0, 2))
    with pytest.raises(InputError, match="4 pairs for 5 processes; give torchrun --nproc-per-node=4 or less"):
        Batches(*samples, batch_size=1, ranks=Ranks(0, 5))


def test_an_empty_data_set_is_refused():
    with pytest.raises(InputError, match="no pairs"):
        TrainingPairs(Sheets(0), preparation())
