import math
from types import SimpleNamespace

import pytest
import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import PyramidConfig
from pcreg.training.info_nce import InfoNCE


def batch(points, lengths, matches):
    """A batch whose points are the same on both sides, up to the positions of the clouds."""
    source, target = (PointBatch(torch.tensor(points) + at, torch.tensor(lengths)) for at in (100, 0))
    return SimpleNamespace(
        names=["a"] * len(lengths),
        matches=torch.tensor(matches),
        pyramid=SimpleNamespace(groups=lambda: [source, target]),
        geometry=PyramidConfig(voxel=1.0),
    )


def loss(features, batch, **settings) -> float:
    return InfoNCE(temperature=1.0, **settings)(features, features, batch, torch.Generator())["total"].item()


FAR = [[0.0, 0, 0], [10, 0, 0], [20, 0, 0]]
SAME = torch.ones(4, 4) / 2  # unit descriptors


def test_descriptors_square_to_each_other_have_the_loss_of_a_softmax():
    value = loss(torch.eye(3), batch(FAR, [3], [[0, 0], [1, 1], [2, 2]]))
    assert value == pytest.approx(math.log(math.e + 2) - 1)


def test_both_directions_count_over_the_temperature():
    """Two targets are equal, so that a source is similar to both and both to that source."""
    matched, same = batch(FAR, [3], [[0, 0], [1, 1], [2, 2]]), torch.eye(3)[[0, 0, 2]]
    found = InfoNCE(temperature=0.5)(torch.eye(3), same, matched, torch.Generator())
    e = math.exp(2)
    forward = (math.log(2 * e + 1) + math.log(3) + math.log(e + 2) - 4) / 3
    backward = math.log(e + 2) - 4 / 3
    wanted = {"total": (forward + backward) / 2, "forward": forward, "backward": backward}
    assert {name: value.item() for name, value in found.items()} == pytest.approx(wanted)


def test_samples_next_to_a_match_do_not_count():
    points = [[0.0, 0, 0], [2.4, 0, 0], [5, 0, 0]]
    value = loss(SAME[:3], batch(points, [3], [[0, 0], [1, 1], [2, 2]]))
    # Rows 0 and 1 are within the radius and ignore each other; row 2 is 2.6 from row 1.
    assert value == pytest.approx((math.log(2) + math.log(2) + math.log(3)) / 3)


def test_points_of_other_clouds_always_count():
    points = [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert loss(SAME[:3], batch(points, [1, 2], [[0, 0], [1, 1]])) == pytest.approx(math.log(2))


def test_points_anywhere_in_the_clouds_count_if_asked_for():
    points = [*FAR, [30.0, 0, 0]]  # a match, and three points that are none
    for negatives, seen in ((0, 1), (4, 4)):
        value = loss(SAME, batch(points, [4], [[0, 0]]), negatives_per_pair=negatives)
        assert value == pytest.approx(math.log(seen))


def test_negatives_next_to_the_match_do_not_count():
    points = [[0.0, 0, 0], [2.4, 0, 0], [0, 2.4, 0], [2.6, 0, 0]]
    value = loss(SAME, batch(points, [4], [[0, 0]]), negatives_per_pair=4)
    assert value == pytest.approx(math.log(2))  # the match itself and the last point
