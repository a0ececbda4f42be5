import numpy as np
import pytest
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.collate import Batches
from pcreg.datasets.jagged import Jagged
from pcreg.datasets.preparation import Downsampled, Preparation, RawPair, scaled_clouds
from pcreg.features.fcgf import FCGF
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import VOXEL, Sheets, architecture, network

SCALES = (1.0, 1.4, 2.0)


def line(*x: float) -> torch.Tensor:
    return torch.tensor([[value, 0.0, 0.0] for value in x], dtype=torch.float64)


def test_clouds_come_scale_by_scale_in_units_of_their_scale():
    clouds = [line(0, 1, 2), line(5, 6)]
    coarser = [
        [Downsampled(torch.tensor([0, 2]), torch.tensor([0, 0, 1]))],
        [Downsampled(torch.tensor([1]), torch.tensor([0, 0]))],
    ]
    every, rows = scaled_clouds(clouds, coarser, (1.0, 2.0))
    assert [cloud[:, 0].tolist() for cloud in every] == [[0, 1, 2], [5, 6], [0, 1], [3]]
    assert rows.tolist() == [[0, 5], [1, 5], [2, 6], [3, 7], [4, 7]]


def test_what_is_left_at_a_scale_is_what_thinning_leaves():
    preparation = Preparation(VOXEL, Augmentation(rotate=False), 1.5 * VOXEL, scales=SCALES)
    (coarser,) = preparation._coarser(Jagged.of([cloud := torch.from_numpy(wavy_sheet(1500))]))
    for scale, left in zip(SCALES[1:], coarser, strict=True):
        assert left.rows.tolist() == voxel_downsample(cloud.numpy(), scale * VOXEL).tolist()
        away = (cloud[:, None] - cloud[left.rows]).norm(dim=-1)
        assert torch.equal(left.nearest, away.argmin(1))


def test_training_joins_what_the_descriptor_joins():
    """On a cloud that is neither turned nor shaken: the same rows, scales and lengths as FCGF in use."""
    augment = Augmentation(rotate=False, scale=(1.0, 1.0), jitter=0.0)
    sheets, net = Sheets(1), network().eval()
    preparation = Preparation(VOXEL, augment, 1.5 * VOXEL, scales=SCALES)
    batch = next(Batches(sheets, preparation, architecture(), batch_size=1).epoch(0)).to("cpu")
    with torch.no_grad():
        source, target = batch.descriptors(net(batch.pyramid))
    for features, name in ((source, "0/source"), (target, "0/target")):
        described = FCGF(net, scales=SCALES).describe(sheets.cloud(name)).features
        assert features.norm(dim=1).numpy() == pytest.approx(1)
        # Clouds divided by their scale fall into other last digits, and a few neighbours over an edge.
        assert np.isclose(features.numpy(), described, atol=1e-4).all(1).mean() > 0.9


def test_of_a_large_cloud_some_points_are_kept():
    cloud = torch.from_numpy(wavy_sheet(1500))
    preparation = Preparation(VOXEL, Augmentation(rotate=False), 1.5 * VOXEL, maximum_points=100)
    (sample,) = preparation([RawPair("pair", cloud, cloud[:50], np.eye(4))], np.random.default_rng(0))
    assert len(sample.source) == 100
    assert len(sample.target) == len(voxel_downsample(cloud[:50].numpy(), VOXEL))
    assert set(map(tuple, sample.source.tolist())) < set(map(tuple, cloud.tolist()))


@pytest.mark.parametrize("scales", [(1.4, 2.0), (1.0, 0.7), (), (1.0, float("inf"))])
def test_scales_start_with_one_and_grow(scales):
    with pytest.raises(InputError, match="give 1 first and then larger ones"):
        Preparation(VOXEL, Augmentation(), 1.5 * VOXEL, scales=scales)
