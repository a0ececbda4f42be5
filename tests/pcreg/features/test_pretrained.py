"""The shipped weights: there, and as their card says."""

import hashlib

import numpy as np
import pytest

from pcreg.features import pretrained
from pcreg.features.fcgf import FCGF
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import wavy_sheet


def test_the_file_is_the_one_that_its_card_describes():
    path, card = pretrained.WEIGHTS, pretrained.WEIGHTS.with_suffix(".md")
    learned = FCGF.load()
    assert learned.voxel == pretrained.ROOM_VOXEL
    assert hashlib.sha256(path.read_bytes()).hexdigest() in card.read_text()
    assert learned.network.fingerprint in card.read_text()


@pytest.mark.parametrize("factor", [4, 2.0**-20])
def test_a_network_knows_no_unit_of_length(factor):
    learned = FCGF.load()
    points = wavy_sheet(1500) + np.array([0.0, 0.0, 2.0])
    clouds, finer = (points, points + np.array([0.5, 0.0, 3.0])), learned.at(factor * learned.voxel)
    usual, other = learned.describe(*clouds), finer.describe(*(factor * each for each in clouds))
    np.testing.assert_array_equal(other.points, factor * usual.points)
    np.testing.assert_allclose(other.features, usual.features, atol=1e-5)
    assert "trained at 0.05 m" in learned.at(0.2).label
    assert "trained at" not in learned.label
    with pytest.raises(InputError, match=r"voxel 0\.0 is not a size"):
        learned.at(0.0)


def test_descriptors_do_not_change_when_the_sensor_turns():
    """Rotations map the grid of points onto itself, so that only the kernels are tested."""
    learned = FCGF.load()
    points = learned.describe(wavy_sheet(1500) + np.array([0.0, 0.0, 2.0])).points
    found = {}
    for name, axes in {"as it is": [0, 1, 2], "turned": [1, 2, 0]}.items():
        described = learned.describe(points[:, axes])
        found[name] = dict(
            zip(map(tuple, described.points[:, np.argsort(axes)]), described.features, strict=True)
        )
    common = found["as it is"].keys() & found["turned"].keys()
    assert len(common) > 0.5 * len(points)
    similarity = [found["as it is"][point] @ found["turned"][point] for point in common]
    assert np.median(similarity) > 0.98
