import pytest
import torch

from pcreg.training.optimisation import as_one, one_cycle


def parameters_with_gradients():
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (), (4,), (5, 1))]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full_like(parameter, number + 1.0)
    return parameters


def test_gradients_become_views_of_one_array():
    parameters = parameters_with_gradients()
    whole = as_one(parameters)
    assert whole.tolist() == [1.0] * 6 + [2.0] + [3.0] * 4 + [4.0] * 5
    whole *= 2
    assert parameters[0].grad.tolist() == [[2.0] * 3] * 2
    assert parameters[3].grad.tolist() == [[8.0]] * 5


def test_views_of_one_array_stay_and_some_of_them_do_not():
    parameters = parameters_with_gradients()
    whole = as_one(parameters)
    assert as_one(parameters) is whole
    some = as_one(parameters[1:])
    assert some is not whole
    assert some.tolist() == whole[6:].tolist()


@pytest.mark.parametrize("epochs", [1, 2, 20])
def test_rates_rise_to_the_one_asked_for_and_fall(epochs):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule, rates = one_cycle(optimizer, epochs, warmup_fraction=0.25), []
    for _ in range(epochs):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    top = rates.index(2.0)
    assert rates == sorted(rates[: top + 1]) + sorted(rates[top + 1 :], reverse=True)
    assert min(rates) > 0
    if epochs == 20:
        assert rates[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
        assert rates[-1] < 0.05
