import pytest
import torch

from pcreg.training.schedule import one_cycle


def rates(epochs, **settings):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule, found = one_cycle(optimizer, epochs, **settings), []
    for _ in range(epochs):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def test_it_rises_to_the_rate_asked_for_and_falls():
    found = rates(20, warmup_fraction=0.25)
    assert found[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    assert found[5:] == sorted(found[5:], reverse=True)
    assert found[5] == 2.0
    assert 0 < found[-1] < 0.05


@pytest.mark.parametrize("epochs", [1, 2, 10])
def test_short_trainings_have_one_too(epochs):
    found = rates(epochs)
    assert max(found) == 2.0
    assert min(found) > 0
