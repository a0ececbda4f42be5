"""Of what the matcher says of two clouds: what it may not depend on, and what is known beforehand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pcreg.geometry.se3 import random_rotation
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.point_batch import PointBatch
from pcreg.models import patches as patches_module
from pcreg.models.matcher import Assignment, Matcher, MatcherArchitecture
from pcreg.models.patches import Patches
from tests.pcreg.scenes import wavy_sheet

CHANNELS, NODE_CHANNELS, SPACING = 8, 12, 0.3
TINY = MatcherArchitecture(descriptor_channels=CHANNELS, width=16, heads=2, layers=("self", "cross"))


def cloud(seed, count=600):
    return wavy_sheet(count, seed=seed) - np.array([0.0, 0.0, 2.0])


def descriptors(seed, count=600):
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, CHANNELS, generator=generator))


@pytest.fixture(scope="module")
def matcher():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Matcher(TINY, NODE_CHANNELS).eval()


def node_features(patches):
    """Of each node features of its own, by the cloud's number and the node's place."""
    place = patches.points[patches.present]
    angles = place @ torch.randn(3, NODE_CHANNELS, generator=torch.Generator().manual_seed(5))
    return torch.cos(3 * angles)


def assigned(matcher, features, patches, known=None):
    with torch.inference_mode():
        known = node_features(patches) if known is None else known
        nodes = matcher.nodes(features, known, patches)
        return matcher.match_nodes(features, nodes, patches)


def patched(*clouds):
    batch = PointBatch.from_clouds(clouds)
    origins = torch.zeros(len(clouds), 3, dtype=torch.float64)
    nodes = batch.select(grid_sample(batch.points, batch.lengths, SPACING, origins))
    up = torch.tensor([[0.0, 0.0, 1.0]]).expand(len(nodes), 3)
    return Patches.of(batch, nodes, up, SPACING)


def test_a_pose_changes_the_answer_by_rounding_alone(matcher):
    patches = patched(cloud(0), cloud(1))
    R = torch.from_numpy(random_rotation(np.random.default_rng(0))).float()
    points, normals = patches.points.clone(), patches.normals.clone()
    points[0], normals[0] = points[0] @ R.T + torch.tensor([5.0, -3.0, 1.0]), normals[0] @ R.T
    moved = replace(patches, points=points, normals=normals)
    features = torch.cat([descriptors(0), descriptors(1)])
    known = node_features(patches)
    before, after = (assigned(matcher, features, each, known).rows for each in (patches, moved))
    assert torch.allclose(before, after, atol=1e-3)
    assert before.exp().std() > 1e-4


def test_pairs_of_a_batch_are_matched_as_each_by_itself(matcher):
    sizes = 600, 250, 400, 520
    clouds = [cloud(seed, count) for seed, count in enumerate(sizes)]
    features = [descriptors(seed, count) for seed, count in enumerate(sizes)]
    together = assigned(matcher, torch.cat(features), patched(*clouds))
    for pair in range(2):
        sides = pair, pair + 2
        patches = patched(*(clouds[side] for side in sides))
        alone = assigned(matcher, torch.cat([features[side] for side in sides]), patches)
        rows, columns = patches.present.sum(1).tolist()
        for batched, single in (
            (together.rows, alone.rows),
            (together.log_probability, alone.log_probability),
        ):
            assert torch.allclose(batched[pair, :rows, :columns], single[0, :rows, :columns], atol=1e-4)
        assert (together.rows[pair, :rows, columns:-1] == -torch.inf).all()


def test_exchanged_clouds_have_exchanged_matches(matcher):
    clouds, features = (cloud(0), cloud(1, 400)), (descriptors(0), descriptors(1, 400))
    there = assigned(matcher, torch.cat(features), patched(*clouds))
    back = assigned(matcher, torch.cat(features[::-1]), patched(*clouds[::-1]))
    assert torch.allclose(there.rows, back.columns, atol=1e-5)


def test_what_resembles_nothing_has_no_partner():
    scores = torch.tensor([[[9.0, 0.0], [0.0, 0.0]]])
    slots = torch.full((1, 2), 4.0), torch.full((1, 2), 4.0)
    present = torch.ones(1, 2, dtype=torch.bool), torch.ones(1, 2, dtype=torch.bool)
    rows = Assignment.of(scores, slots, present).rows.exp()[0]
    assert rows[0].argmax() == 0
    assert rows[1].argmax() == 2  # the slot
    assert torch.allclose(rows.sum(1), torch.ones(2))
    without = Assignment.of(scores, None, present).rows.exp()[0]
    assert torch.equal(without[:, 2], torch.zeros(2))


def test_every_parameter_has_a_gradient(matcher):
    patches, features = patched(cloud(0), cloud(1)), torch.cat([descriptors(0), descriptors(1)])
    nodes = matcher.nodes(features, node_features(patches), patches)
    columns = patches.present.shape[1]
    pairs = torch.stack([torch.arange(5), columns + torch.arange(5)], 1)
    fine, source, target = matcher.match_points(features, nodes, patches, pairs)
    coarse = matcher.match_nodes(features, nodes, patches)
    present = (source >= 0)[:, :, None] & (target >= 0)[:, None]
    (coarse.rows[coarse.rows.isfinite()].sum() + fine.log_probability[present].sum()).backward()
    assert [name for name, each in matcher.named_parameters() if each.grad is None] == []
    matcher.zero_grad()


def test_points_belong_to_the_nearest_node_of_their_cloud():
    clouds = cloud(0), cloud(1, 200)
    patches = patched(*clouds)
    batch = PointBatch.from_clouds(clouds)
    rows = patches.present.shape[1]
    for number, points in enumerate(batch.points.split(batch.lengths.tolist())):
        nodes = patches.points[number][patches.present[number]]
        own = patches.node[: len(points)] if number == 0 else patches.node[-len(points) :]
        assert torch.equal(own - number * rows, torch.cdist(points, nodes).argmin(1))
    members = patches.members(1000)
    assert sorted(members[members >= 0].tolist()) == list(range(len(batch.points)))
    node, _ = (members >= 0).nonzero(as_tuple=True)
    assert torch.equal(patches.node[members[members >= 0]], node)


def test_a_large_cloud_has_larger_patches(monkeypatch):
    monkeypatch.setattr(patches_module, "MAX_NODES", 10)
    patches = patched(cloud(0), cloud(1, 10))
    assert patches.present.sum(1).max() <= 10
    assert patches.spacing[0] > patches.spacing[1] == np.float32(SPACING)
