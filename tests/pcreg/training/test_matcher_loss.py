import math

import torch

from pcreg.models.patches import Patches
from pcreg.training.matcher_loss import cross_entropy, node_truth, point_truth


def patches(node):
    """Two clouds of two nodes each; `node` of each point."""
    zeros = torch.zeros(2, 2, 3)
    return Patches(zeros, zeros, torch.ones(2, 2, dtype=torch.bool), torch.ones(2), torch.tensor(node))


def test_the_truth_of_a_node_is_where_the_partners_of_its_points_are():
    # Points 0, 1, 2 and 3 of the source, 4, 5 and 6 of the target; 3 has two partners, 1 has none.
    both = patches([0, 0, 1, 1, 2, 2, 3])
    matches = torch.tensor([[0, 4], [2, 5], [3, 5], [3, 6]])
    of_source, of_target = node_truth(both, matches)
    assert torch.allclose(of_source, torch.tensor([[[0.5, 0.0], [0.75, 0.25]]]))
    assert torch.allclose(of_target, torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))


def test_the_truth_of_points_knows_padding():
    source, target = torch.tensor([[0, 1, -1]]), torch.tensor([[5, 4, -1]])
    found = point_truth(source, target, torch.tensor([[0, 4], [1, 6]]))
    assert found.tolist() == [[[False, True, False], [False] * 3, [False] * 3]]


def test_cross_entropy_is_least_at_the_truth():
    truth = torch.tensor([[[0.5, 0.25], [0.0, 0.0]]])
    present = torch.tensor([[True, True]])
    right = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]]).clamp(min=1e-9).log()
    entropy = 1.5 * math.log(2) / 2  # the second row is certain
    assert math.isclose(cross_entropy(right, truth, present).item(), entropy, rel_tol=1e-5)
    for other in ([0.6, 0.2, 0.2], [0.4, 0.3, 0.3]):
        wrong = right.clone()
        wrong[0, 0] = torch.tensor(other).log()
        assert cross_entropy(wrong, truth, present) > entropy


def test_rows_of_padding_do_not_count():
    predicted = torch.log_softmax(torch.randn(1, 3, 4), 2)
    truth = torch.rand(1, 3, 3) / 3
    some = cross_entropy(predicted, truth, torch.tensor([[True, True, False]]))
    assert math.isclose(some.item(), cross_entropy(predicted[:, :2], truth[:, :2], torch.ones(1, 2)).item())
