import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from pcreg.features.cache import FeatureCache, read_described
from pcreg.features.fcgf import FCGF
from pcreg.geometry.se3 import residuals
from pcreg.io.pairs import Pair
from pcreg.models.weights import load_weights
from pcreg.models.weights_file import MatcherArchitecture
from pcreg.registration.matching.attention import AttentionMatcher, joined
from pcreg.registration.matching.nearest import Matches
from pcreg.runtime.errors import InputError
from pcreg.training.info_nce import InfoNCE
from pcreg.training.matcher_loss import MatcherLoss
from pcreg.training.matcher_trainer import MatcherTrainer
from pcreg.training.validation import feature_match_recall
from tests.pcreg.mutual import mutual
from tests.pcreg.tiny import VOXEL, Sheets, T, batches, network

TINY = MatcherArchitecture(descriptor_channels=8, width=16, heads=2, layers=("self", "cross"))


def matching_network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return network().with_matcher(TINY)


def trainer(folder, rate=1e-3, **settings):
    whole = matching_network()
    optimizer = torch.optim.AdamW(whole.parameters(), rate)
    losses = {"loss": InfoNCE(positives_per_pair=64), "matcher_loss": MatcherLoss(32, 32)}
    return MatcherTrainer(whole, optimizer, folder, **losses, checkpoint_every=1, **settings)


def unvalidated(_network):
    return {"feature_match_recall": 0.0, "inlier_ratio": 0.0}


def validate(whole):
    matcher = AttentionMatcher(whole, with_nearest=False)
    return feature_match_recall(FCGF(whole, scales=[1]), Sheets(2), tau=0.05, matcher=matcher)


def test_the_loss_of_matches_reaches_the_network_that_describes(tmp_path):
    training = trainer(tmp_path)
    batch = next(batches().epoch(0)).to("cpu")
    training.network.train()
    loss = training._loss(batch)
    assert loss["total"].item() == pytest.approx(
        sum(loss[k].item() for k in ("descriptors", "coarse", "fine"))
    )
    loss["coarse"].backward()
    encoder, decoder = training.network.conv3.weight.grad, training.network.conv4_tr.weight.grad
    assert encoder.abs().max() > 0
    assert decoder.abs().max() > 0


def test_a_matcher_alone_is_trained_and_all_else_stays(tmp_path):
    whole = matching_network()
    whole.train_matcher_alone()
    before = copy.deepcopy(whole.state_dict())
    optimizer = torch.optim.AdamW([each for each in whole.parameters() if each.requires_grad], 1e-2)
    losses = {"loss": InfoNCE(positives_per_pair=64), "matcher_loss": MatcherLoss(32, 32)}
    training = MatcherTrainer(whole, optimizer, tmp_path, **losses, ema=0.9)
    training.fit(batches(), 1, validate)
    for after in (whole.state_dict(), load_weights(tmp_path / "last.safetensors").state_dict()):
        moved = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
        assert moved
        assert all(name.startswith("matcher.") for name in moved)
        assert "matcher.standardize.running_mean" in moved


def test_a_matcher_learns_pairs_whose_descriptors_say_little(tmp_path):
    """After few steps nearest descriptors are mostly wrong, matches of both clouds together are not."""
    training = trainer(tmp_path, rate=3e-3)
    training.fit(batches(Sheets(2), rotate=False), 60, unvalidated, 60)
    whole, pair = training.output_network, Pair("0/source", "0/target", T)
    described = [
        FCGF(whole, scales=[1]).describe(Sheets().cloud(name)) for name in (pair.source, pair.target)
    ]
    source, target = described

    def right(rows):
        distances = residuals(T, source.points[rows[:, 0]], target.points[rows[:, 1]])
        return (distances < 2 * VOXEL).mean()

    found = AttentionMatcher(whole, with_nearest=False).match(source, target, VOXEL)
    nearest = right(mutual(source.features, target.features))
    assert right(found.rows) > nearest + 0.1
    assert len(np.unique(found.rows[:, 0])) == len(np.unique(found.rows[:, 1])) == len(found.rows)
    assert len(np.unique(found.one_way[:, 0])) == len(found.one_way) >= len(found.rows)
    assert found.confidence.min() > 0
    assert found.confidence.max() <= 1


def test_matches_do_not_depend_on_the_origin_and_repeat():
    whole = matching_network()
    source, target = (
        FCGF(whole, scales=[1]).describe(Sheets().cloud(f"0/{side}")) for side in ("source", "target")
    )
    far = np.array([4e5, -3e5, 1e3])
    moved = replace(
        source, points=source.points + far, nodes=replace(source.nodes, points=source.nodes.points + far)
    )
    matching = AttentionMatcher(whole)
    found, again, elsewhere = (matching.match(cloud, target, VOXEL) for cloud in (source, source, moved))
    assert np.array_equal(found.rows, again.rows)
    assert np.array_equal(found.confidence, again.confidence)
    shared = {tuple(row) for row in found.rows.tolist()} & {tuple(row) for row in elsewhere.rows.tolist()}
    assert len(shared) > 0.99 * len(found.rows) > 0


def test_nearest_matches_join_those_of_attention():
    found = Matches(
        np.array([[0, 1], [2, 3]]), np.array([0.2, 0.7], np.float32), np.array([[0, 1], [2, 3], [4, 4]])
    )
    nearest = Matches(np.array([[0, 1], [2, 5]]), one_way=np.array([[0, 1], [4, 6]]))
    both = joined(found, nearest)
    assert both.rows.tolist() == [[0, 1], [2, 3], [2, 5]]
    assert np.allclose(both.confidence, [0.2, 0.7, 0.25])  # the first tenth between 0.2 and 0.7
    assert both.one_way.tolist() == [[0, 1], [2, 3], [4, 4], [4, 6]]


def test_a_description_keeps_its_nodes_in_the_cache(tmp_path):
    descriptor, points = FCGF(matching_network(), scales=[1]), Sheets().cloud("0/source")
    kept = read_described(FeatureCache(tmp_path, descriptor, {}).file_of(points)).description
    for name, array in vars(descriptor.describe(points).nodes).items():
        assert np.array_equal(array, getattr(kept.nodes, name)), name
    assert len(kept.of_rows(np.arange(3)).nodes.points) == len(kept.nodes.points)


def test_weights_and_descriptions_without_a_matcher_are_refused():
    with pytest.raises(InputError, match="have no matcher"):
        AttentionMatcher(network())
    plain = FCGF(network(), scales=[1]).describe(Sheets().cloud("0/source"))
    with pytest.raises(InputError, match="weights that have a matcher"):
        AttentionMatcher(matching_network()).match(plain, plain, VOXEL)
