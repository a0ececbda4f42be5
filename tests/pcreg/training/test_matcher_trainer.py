import numpy as np
import pytest
import torch

from pcreg.features.base import Description
from pcreg.features.fcgf import FCGF
from pcreg.geometry.se3 import residuals
from pcreg.kernels.point_batch import PointBatch
from pcreg.models.matcher import Matcher, MatcherArchitecture
from pcreg.models.patches import Patches
from pcreg.models.weights import load_matcher, load_weights
from pcreg.registration.attention import AttentionMatcher
from pcreg.runtime.errors import InputError
from pcreg.training.matcher_loss import MatcherLoss
from pcreg.training.matcher_trainer import MIN_KEPT, MatcherTrainer, cropped, match_recall
from tests.pcreg.mutual import mutual
from tests.pcreg.tiny import VOXEL, Sheets, batches, network
from tests.pcreg.training.test_trainer import Stopped, StopsAt


def tiny_matcher(channels=8):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = ("self", "cross")
        return Matcher(MatcherArchitecture(descriptor_channels=channels, width=16, heads=2, layers=layers))


def trainer(folder, **settings):
    matcher = tiny_matcher()
    optimizer = torch.optim.AdamW(matcher.parameters(), 1e-3)
    return MatcherTrainer(
        matcher, network(), optimizer, folder, loss=MatcherLoss(8, 8), checkpoint_every=1, **settings
    )


def validate(matcher):
    return match_recall(matcher, FCGF(network(), scales=[1]), Sheets(2), tau=0.05)


def test_a_resumed_training_ends_bit_equal(tmp_path):
    whole = trainer(tmp_path / "whole", ema=0.9)
    backbone = {name: tensor.clone() for name, tensor in whole.backbone.state_dict().items()}
    figures = whole.fit(batches(), 2, validate)
    with pytest.raises(Stopped):
        trainer(tmp_path / "parts", ema=0.9).fit(StopsAt(1, 1), 2, validate)
    resumed = trainer(tmp_path / "parts", ema=0.9)
    assert resumed.resume()
    assert resumed.fit(batches(), 2, validate) == figures
    written = load_matcher(tmp_path / "parts" / "last.safetensors")
    for name, tensor in whole.output_network.state_dict().items():
        assert torch.equal(tensor, written.state_dict()[name]), name
    for name, tensor in whole.backbone.state_dict().items():
        assert torch.equal(tensor, backbone[name]), name


def test_weights_of_another_kind_are_refused(tmp_path):
    trainer(tmp_path).fit(batches(), 1, validate)
    with pytest.raises(InputError, match="another kind of network"):
        load_weights(tmp_path / "last.safetensors")


def test_a_matcher_learns_a_pair_whose_descriptors_say_little():
    """Descriptors of which half is noise: nearest ones are mostly wrong, those of two clouds seen together
    are not.
    """
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (400, 3)) * [1, 1, 0.1] + [0, 0, -2.0]
    shared = rng.normal(size=(400, 8))
    noisy = [shared + 0.9 * rng.normal(size=shared.shape) for _ in range(2)]
    source, target = (
        Description(points, (each / np.linalg.norm(each, axis=1, keepdims=True)).astype(np.float32))
        for each in noisy
    )

    def right(rows):
        return (residuals(np.eye(4), points[rows[:, 0]], points[rows[:, 1]]) < 2 * VOXEL).mean()

    torch.manual_seed(0)
    matcher, loss = tiny_matcher(), MatcherLoss(32, 32)
    optimizer = torch.optim.AdamW(matcher.parameters(), 3e-3)
    features = torch.from_numpy(np.concatenate([source.features, target.features]))
    patches = Patches.of(PointBatch.from_clouds([points, points]), matcher.architecture.node_voxels * VOXEL)
    matches = torch.arange(400)[:, None] + torch.tensor([0, 400])
    for step in range(150):
        optimizer.zero_grad()
        loss(matcher, features, patches, matches, torch.Generator().manual_seed(step))["total"].backward()
        optimizer.step()
    found = AttentionMatcher(matcher).match(source, target, VOXEL)
    nearest = right(mutual(source.features, target.features))
    assert right(found.rows) > nearest + 0.3
    assert len(np.unique(found.rows[:, 0])) == len(np.unique(found.rows[:, 1])) == len(found.rows)
    assert found.confidence.min() > 0
    assert found.confidence.max() <= 1


def test_a_crop_keeps_the_nodes_on_one_side_of_a_plane_and_the_matches_among_them():
    points = np.random.default_rng(0).uniform(-1, 1, (2, 500, 3))
    patches = Patches.of(PointBatch.from_clouds(list(points)), 0.3)
    matches = torch.arange(500)[:, None] + torch.tensor([0, 500])
    less, left = cropped(patches, matches, torch.Generator().manual_seed(0))
    shares = less.present.sum(1) / patches.present.sum(1)
    assert (shares >= MIN_KEPT).all()
    assert (shares < 1).all()
    assert not (less.present & ~patches.present).any()
    kept = less.present.flatten()[patches.node[matches]]
    assert torch.equal(left, matches[kept.all(1)])
    for cloud in range(2):  # the two sides of the plane are apart, so their means are
        inside = patches.points[cloud][less.present[cloud]]
        outside = patches.points[cloud][patches.present[cloud] & ~less.present[cloud]]
        axis = inside.mean(0) - outside.mean(0)
        assert (inside @ axis).mean() > (outside @ axis).mean() + 0.5 * axis.norm()


def test_a_batch_is_used_for_several_steps(tmp_path):
    echoed = trainer(tmp_path, echoes=3)
    echoed.fit(batches(), 1, validate)
    assert echoed.state.step == 3 * len(batches())
