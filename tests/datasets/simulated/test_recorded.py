import numpy as np
import pytest
import torch

from pcreg.datasets.simulated.recorded import Recorded, Recording
from pcreg.geometry.se3 import se3, transform
from pcreg.runtime.errors import InputError
from tests.datasets.simulated.test_endless import record


@pytest.fixture
def recorded():
    return Recorded(record, voxel=0.05, count=2, per_scene=2, device="cpu")


def test_pairs_are_of_their_scene_and_true(recorded):
    assert [pair.scene for pair in recorded.pairs] == ["scene-0"] * 2 + ["scene-1"] * 2
    pair = next(pair for pair in recorded.pairs if {pair.source[-1], pair.target[-1]} == {"0", "1"})
    source, target = recorded.cloud(pair.source), recorded.cloud(pair.target)
    np.testing.assert_allclose(transform(pair.T_target_source, source), target, atol=1e-5)
    assert pair.overlap > 0.9


def test_clouds_apart_share_nothing_and_have_a_motion():
    """Two clouds far from each other, in a scene of two."""

    def record_apart(seed, index, device):
        cloud = torch.rand(500, 3, generator=torch.Generator().manual_seed(index))
        poses = np.stack([np.eye(4), se3(np.eye(3), np.array([50.0, 0, 0])), np.eye(4)])
        return Recording([cloud, cloud, cloud], poses)

    recorded = Recorded(record_apart, voxel=0.05, count=2, per_scene=9, device="cpu")
    assert {frozenset((pair.source[-1], pair.target[-1])) for pair in recorded.pairs} == {frozenset("02")}
    apart = [(pair.source[-1], pair.target[-1]) for pair in recorded.apart]
    assert sorted(set(apart)) == [("0", "1"), ("1", "0"), ("1", "2"), ("2", "1")]
    assert all(abs(pair.T_target_source[0, 3]) == 50 for pair in recorded.apart)
    assert recorded.cloud(recorded.apart[0].source).shape == (500, 3)


@pytest.mark.parametrize("count", [1, 2])
def test_origins_behind_clouds_keep_the_truth(recorded, count):
    behind = Recorded(record, voxel=0.05, count=2, per_scene=2, device="cpu", behind=count)
    for pair, before in zip(behind.pairs, recorded.pairs, strict=True):
        assert [name.endswith("-behind") for name in (pair.source, pair.target)] == [True, count == 2]
        source, target = behind.cloud(pair.source), recorded.cloud(before.target)
        offset = behind.cloud(pair.target)[0] - target[0]
        np.testing.assert_allclose(
            transform(pair.T_target_source, source),
            transform(before.T_target_source, recorded.cloud(before.source)) + offset,
            atol=1e-9,
        )
        assert (np.linalg.norm(offset) > 0.5) == (count == 2)
        seen = np.linalg.norm(recorded.cloud(before.source).mean(0))
        assert source.mean(0) @ recorded.cloud(before.source).mean(0) < -0.5 * seen**2


def test_other_names_are_refused(recorded):
    with pytest.raises(InputError, match="scene-9/0: no such cloud"):
        recorded.cloud("scene-9/0")


def test_no_cloud_is_paired_with_itself():
    recorded = Recorded(record, voxel=0.05, count=1, per_scene=9, minimum_overlap=0, device="cpu")
    assert all(pair.source != pair.target for pair in recorded.pairs)
