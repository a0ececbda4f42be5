"""The batch norm of training against its definition: on a GPU, or else in Triton's interpreter."""

import pytest
import torch

from pcreg.kernels.batch_norm import batch_norm
from pcreg.kernels.point_batch import PaddedRowGroups, RowGroups
from tests.kernels.clouds import DEVICE, ON_GPU

KERNEL = pytest.importorskip("pcreg.kernels.triton.batch_norm", reason="no triton for this platform")
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 1e-2}


def norm_of(scale, shift):
    """A norm with statistics."""
    norm = torch.nn.BatchNorm1d(len(scale), momentum=0.05, device=DEVICE, dtype=scale.dtype)
    norm.weight, norm.bias = torch.nn.Parameter(scale.clone()), torch.nn.Parameter(shift.clone())
    norm.running_mean[:] = torch.linspace(0.5, 2, len(scale), dtype=scale.dtype)
    norm.running_var[:] = norm.running_mean + 1
    norm.num_batches_tracked += 3
    return norm


def running(norm):
    return norm.running_mean, norm.running_var, norm.num_batches_tracked, norm.momentum


@pytest.fixture(autouse=True)
def few_parts(monkeypatch):
    """Use few programs, as the interpreter runs one after the other."""
    if not ON_GPU:
        monkeypatch.setattr(KERNEL.kernels.PARTS, "value", 2)


def check(sizes, C, dtype, with_residual, relu):
    generator = torch.Generator().manual_seed(C)

    def values(*shape, dtype=dtype):
        return torch.randn(shape, generator=generator).to(DEVICE, dtype)

    N, groups = sum(sizes), RowGroups(sizes)
    row = torch.arange(N, device=DEVICE)[:, None]
    # Means far from zero, other ones in each group; no two rows are nearly the same, for groups of two.
    features = values(N, C) / 2 + (10 + 3 * (row >= sizes[0]) + 5 * (row % 2)).to(dtype)
    scale, shift = values(C, dtype=torch.float32), values(C, dtype=torch.float32)
    residual = values(N, C) if with_residual else None
    grad_out = values(N, C)
    norm = norm_of(scale, shift)
    seen, definition = running(norm), norm_of(scale.double(), shift.double())

    inputs = [each if each is None else each.requires_grad_() for each in (features, scale, shift, residual)]
    out = KERNEL.BatchNorm.apply(*inputs, groups, 1e-5, seen, relu)
    given = [each for each in inputs if each is not None]
    grads = torch.autograd.grad(out, given, grad_out)
    exact = [each if each is None else each.detach().double().requires_grad_() for each in inputs]
    exact[1:3] = definition.weight, definition.bias
    expected = batch_norm(exact[0], groups, definition, exact[3])
    # Both must decide the same where rounding decides if a relu lets a gradient pass.
    mask = (out.detach() > 0).double() if relu else torch.ones_like(expected)
    expected_grads = torch.autograd.grad(
        expected, [each for each in exact if each is not None], grad_out.double() * mask
    )
    expected = torch.relu(expected) if relu else expected
    for name, value, truth, own in zip(
        ("out", "features", "scale", "shift", "residual"),
        (out, *grads),
        (expected, *expected_grads),
        (features, *given),
        strict=False,
    ):
        assert value.dtype == own.dtype, name
        assert (value.double() - truth).norm() <= TOLERANCE[dtype] * (truth.norm() + 1), name
    for value, truth in zip(seen, running(definition), strict=True):
        found, wanted = torch.as_tensor(value).double(), torch.as_tensor(truth).double()
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("sizes", "with_residual"), [((2,), False), ((513,), False), ((2, 65), True), ((150, 3, 129), True)]
)
def test_groups(sizes, with_residual):
    check(sizes, 33, torch.float32, with_residual, relu=True)


@pytest.mark.parametrize(
    ("C", "dtype", "relu"),
    [(32, torch.bfloat16, True), (64, torch.bfloat16, False), (512, torch.float32, True)],
)
def test_widths_and_dtypes(C, dtype, relu):
    check((70, 67) if C < 512 else (5,), C, dtype, True, relu)


@pytest.mark.parametrize("padding", [1, 200])
def test_padded_rows_change_nothing_and_become_zero(padding):
    generator, sizes, C = torch.Generator().manual_seed(0), (70, 67), 33
    rows = sum(sizes)
    features, residual, grad_out = torch.randn(3, rows, C, generator=generator).to(DEVICE)
    scale, shift = torch.rand(2, C, generator=generator).to(DEVICE)
    padded = PaddedRowGroups(rows + padding, torch.tensor([0, 70, rows], device=DEVICE))

    def run(groups, behind):
        def with_padding(values, fill):
            return torch.cat([values, values.new_full((behind, C), fill)]).requires_grad_()

        given = with_padding(features, torch.nan), scale, shift, with_padding(residual, torch.nan)
        given[1].requires_grad_(), given[2].requires_grad_()
        seen = running(norm_of(scale, shift))
        out = KERNEL.BatchNorm.apply(*given, groups, 1e-5, seen, True)
        gradients = torch.autograd.grad(out, given, with_padding(grad_out, torch.nan))
        return [out, *gradients, *seen[:3]]

    for found, wanted in zip(run(padded, padding), run(RowGroups(sizes), 0), strict=True):
        if len(found.shape) == 2:
            assert not found[rows:].any()
            found = found[:rows]
        assert torch.equal(found, wanted)
    with pytest.raises(ValueError, match="are not 5 rows"):
        padded.check(5)


def test_of_several_groups_the_norm_is_that_of_each():
    """On the CPU: compared with PyTorch's module, which is given one group after the other."""
    sizes, module, norm = (5, 3, 9), *(torch.nn.BatchNorm1d(4, momentum=0.3) for _ in range(2))
    features = torch.randn(17, 4, generator=torch.Generator().manual_seed(0))
    out = batch_norm(features, RowGroups(sizes), norm)
    assert torch.equal(out, torch.cat([module(part) for part in features.split(sizes)]))
    for found, wanted in zip(norm.buffers(), module.buffers(), strict=True):
        assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [((5, 0), "two rows in each"), ((4, 1), "two rows in each"), ((2, 2), "are not 5 rows")],
)
def test_groups_that_cannot_be_are_refused(sizes, sentence):
    with pytest.raises(ValueError, match=sentence):
        batch_norm(torch.zeros(5, 3), RowGroups(sizes), torch.nn.BatchNorm1d(3))


def test_a_norm_of_what_is_not_a_number_is_none():
    features, vector = torch.ones(4, 3, device=DEVICE), torch.ones(3, device=DEVICE)
    features[1, 1] = torch.nan
    seen = running(norm_of(vector, vector))
    out = KERNEL.BatchNorm.apply(features, vector, vector, None, RowGroups((4,)), 1e-5, seen, True)
    assert out.isnan().any(0).tolist() == [False, True, False]
