import pytest
import torch

from kernels import reference
from kernels.autograd import _point_conv, _weight_gradient, point_conv
from kernels.mvmr import mvmr
from kernels.vvor import vvor

from .clouds import random_triplets


def problem(n_out=33, n_in=50, C=6, M=8, groups=1, fineness=3, dtype=torch.float64, seed=0, fan_in=0.35):
    generator = torch.Generator().manual_seed(seed)
    triplets = random_triplets(n_out, n_in, fineness=fineness, seed=seed, fan_in=fan_in)
    features = torch.randn(n_in, C, generator=generator, dtype=dtype)
    shape = (fineness**3, groups, C // groups, M // groups)
    return features, torch.randn(shape, generator=generator, dtype=dtype), triplets


@pytest.mark.parametrize("fineness", [1, 3, 5, 7])
@pytest.mark.parametrize("n", [0, 1, 63, 500])
@pytest.mark.parametrize(("C", "M", "groups"), [(1, 1, 1), (7, 33, 1), (64, 32, 1), (6, 4, 2), (8, 8, 8)])
def test_operators_equal_their_definitions(fineness, n, C, M, groups):
    features, weight, triplets = problem(n, n, C, M, groups, fineness, torch.float32)
    grad_out = torch.randn(n, M, generator=torch.Generator().manual_seed(9))
    exact = reference.mvmr(features.double(), weight.double(), triplets)
    torch.testing.assert_close(mvmr(features, weight, triplets).double(), exact, rtol=1e-5, atol=1e-4)
    exact = reference.vvor(features.double(), grad_out.double(), triplets, groups)
    result = vvor(features, grad_out, triplets, groups)
    torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-4)


def test_identity_weight_sums_the_neighbours():
    features, weight, triplets = problem(C=5, M=5)
    weight[:] = torch.eye(5)
    expected = torch.zeros(triplets.n_out, 5, dtype=torch.float64)
    for i, j in zip(triplets.i.tolist(), triplets.j.tolist(), strict=True):
        expected[i] += features[j]
    torch.testing.assert_close(point_conv(features, weight, triplets), expected)


@pytest.mark.parametrize("groups", [1, 2])
def test_gradients(groups):
    features, weight, triplets = problem(9, 11, 4, 6, groups, fan_in=0.7)
    inputs = (features.requires_grad_(), weight.requires_grad_())
    assert len(triplets) > 20
    assert torch.autograd.gradcheck(lambda x, w: point_conv(x, w, triplets), inputs)
    assert torch.autograd.gradcheck(
        lambda x, w: point_conv(x, w, triplets.transposed),
        (
            torch.randn(9, 4, dtype=torch.float64, requires_grad=True),
            weight,
        ),
    )


def test_custom_ops_pass_opcheck():
    features, weight, triplets = problem(9, 11, 4, 6, fan_in=0.7)
    inputs = (features.requires_grad_(), weight.requires_grad_())
    arguments = (*inputs, triplets.tensors(), triplets.transposed.tensors(), triplets.n_out)
    torch.library.opcheck(_point_conv, arguments)
    grad_out = torch.randn(9, 6, dtype=torch.float64)
    torch.library.opcheck(_weight_gradient, (features.detach(), grad_out, triplets.tensors(), 1))


def test_repeated_calls_are_bit_equal():
    features, weight, triplets = problem(500, 500, 32, 32, dtype=torch.float32)
    torch.set_num_threads(2)  # the order of sums must not depend on them
    try:
        assert torch.equal(mvmr(features, weight, triplets), mvmr(features, weight, triplets))
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, w: (x[:-1], w), "features must be"),
        (lambda x, w: (x, w[:-1]), "kernel cells"),
        (lambda x, w: (x, w.float()), "cast one of them"),
        (lambda x, w: (x, w[:, 0]), "weight must be"),
    ],
)
def test_misfits_are_refused(change, message):
    features, weight, triplets = problem()
    with pytest.raises(ValueError, match=message):
        point_conv(*change(features, weight), triplets)
