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
    source, target = batch.pyramid.groups()
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


def test_pairs_without_matches_are_left_out_by_name():
    sheets, far = Sheets(), np.eye(4)
    far[0, 3] = 100.0
    for row in (1, 3):  # have nothing in common
        sheets.pairs[row] = Pair(f"{row}/source", f"{row}/target", far)
    (batch,) = batches(sheets, batch_size=4).epoch(0)
    assert sorted(batch.left_out) == ["1/source->1/target", "3/source->3/target"]
    assert len(batch.names) == 2
    assert [batch is None for batch in batches(sheets, batch_size=1).epoch(0)].count(True) == 2


@pytest.mark.parametrize(
    ("size", "ranks", "message"),
    [
        (0, Ranks(), "between 1 and 4"),
        (5, Ranks(), "between 1 and 4"),
        (3, Ranks(0, 2), "4 pairs for 2 processes; take between 1 and 2"),
        (1, Ranks(0, 5), "4 pairs for 5 processes; give torchrun --nproc-per-node=4 or less"),
    ],
)
def test_batches_that_cannot_be_are_refused(size, ranks, message):
    with pytest.raises(InputError, match=message):
        Batches(Sheets(), preparation(), PyramidConfig(), batch_size=size, ranks=ranks)
    with pytest.raises(InputError, match="no pairs"):
        TrainingPairs(Sheets(0), preparation())
