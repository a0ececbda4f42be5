import math

import torch

from pcreg.models.patches import Patches
from pcreg.training.matcher_loss import divergence, node_truth, point_truth


def patches(node):
    """Two clouds of two nodes each; `node` of each point."""
    zeros = torch.zeros(2, 2, 3)
    present = torch.ones(2, 2, dtype=torch.bool)
    return Patches(zeros, zeros, present, torch.ones(2), torch.arange(4), torch.tensor(node))


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


def test_the_divergence_from_the_truth_is_zero_at_it_alone():
    truth = torch.tensor([[[0.5, 0.25], [0.0, 0.0]]])
    present = torch.tensor([[True, True]])
    right = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]]).clamp(min=1e-9).log()
    assert abs(divergence(right, truth, present).item()) < 1e-6
    even = torch.full((1, 2, 3), 1 / 3).log()
    expected = (math.log(3) - 1.5 * math.log(2) + math.log(3)) / 2  # what the uniform lacks to both rows
    assert math.isclose(divergence(even, truth, present).item(), expected, rel_tol=1e-5)
    for other in ([0.6, 0.2, 0.2], [0.4, 0.3, 0.3]):
        wrong = right.clone()
        wrong[0, 0] = torch.tensor(other).log()
        assert divergence(wrong, truth, present) > 1e-3


def test_without_room_for_no_partner_only_rows_with_partners_count():
    predicted = torch.tensor([[[0.8, 0.2, 0.0], [0.5, 0.5, 0.0]]]).log().requires_grad_()
    truth = torch.tensor([[[0.4, 0.1], [0.0, 0.0]]])  # half of the first node has no partner
    present = torch.tensor([[True, True]])
    loss = divergence(predicted, truth, present)
    assert abs(loss.item()) < 1e-6
    loss.backward()
    assert predicted.grad.isfinite().all()
    even = torch.tensor([[[0.5, 0.5, 0.0]] * 2]).log()
    expected = math.log(2) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
    assert math.isclose(divergence(even, truth, present).item(), expected, rel_tol=1e-5)
