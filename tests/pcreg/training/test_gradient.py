import torch

from pcreg.training.gradient import as_one, views


def parameters_with_gradients():
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (), (4,), (5, 1))]
    for number, parameter in enumerate(parameters):
        parameter.grad = torch.full_like(parameter, number + 1.0)
    return parameters


def test_gradients_become_views_of_one_array():
    parameters = parameters_with_gradients()
    parameters[2].grad = None
    whole = as_one(parameters)
    assert whole.tolist() == [1.0] * 6 + [2.0] + [4.0] * 5
    whole *= 2
    assert parameters[2].grad is None
    assert parameters[0].grad.tolist() == [[2.0] * 3] * 2
    assert parameters[3].grad.tolist() == [[8.0]] * 5


def test_views_of_one_array_stay_and_some_of_them_do_not():
    parameters = parameters_with_gradients()
    whole = as_one(parameters)
    assert as_one(parameters) is whole
    some = as_one(parameters[1:])
    assert some is not whole
    assert some.tolist() == whole[6:].tolist()


def test_views_have_the_shapes_of_others():
    parts = views(torch.arange(7.0), [torch.zeros(2, 2), torch.zeros(3)])
    assert [part.tolist() for part in parts] == [[[0.0, 1.0], [2.0, 3.0]], [4.0, 5.0, 6.0]]
