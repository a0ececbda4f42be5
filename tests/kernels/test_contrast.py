"""Sums over similarities by the kernels, on a GPU or else in Triton's interpreter, against the definition."""

import pytest
import torch

from pcreg.kernels.contrast import logsumexp_apart
from pcreg.kernels.samples import Samples
from tests.kernels.clouds import DEVICE

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton.contrast import logsumexp_apart as by_kernel

pytestmark = pytest.mark.usefixtures("bfloat16_in_the_interpreter")

RADIUS = 0.3


def samples(count, channels, seed, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    features = 4 * torch.nn.functional.normalize(torch.randn(count, channels, generator=generator), dim=1)
    points, cloud = torch.rand(count, 3, generator=generator), torch.arange(count) % 2
    return Samples(features.to(dtype).requires_grad_(), points, cloud)


def on_device(each):
    features = each.features.detach().float().to(DEVICE).requires_grad_()
    return Samples(features, each.points.to(DEVICE), each.cloud.to(DEVICE))


@pytest.mark.parametrize(("S", "K"), [(1, 1), (65, 65), (130, 64), (63, 300)])
@pytest.mark.parametrize("channels", [3, 16, 33])
def test_sums_and_gradients_are_those_of_the_definition(S, K, channels):
    queries, keys = samples(S, channels, 1), samples(K, channels, 2)
    matched, slopes = S == K, torch.rand(S, dtype=torch.float64)
    wanted = logsumexp_apart(queries, keys, RADIUS, matched)
    (wanted * slopes).sum().backward()
    own, others = on_device(queries), on_device(keys)
    found = by_kernel(own, others, RADIUS, matched)
    (found * slopes.float().to(DEVICE)).sum().backward()
    torch.testing.assert_close(found.cpu().double(), wanted, rtol=2e-6, atol=2e-6)
    for side, definition in ((own, queries), (others, keys)):
        gradient = definition.features.grad
        off = (side.features.grad.cpu().double() - gradient).norm() / gradient.norm()
        assert off < 3e-6


def test_samples_next_to_the_query_do_not_count_but_its_match_does():
    points, cloud = torch.zeros(3, 3), torch.tensor([0, 0, 1])
    some = Samples(torch.ones(3, 4), points, cloud)
    for function, at in ((logsumexp_apart, some), (by_kernel, on_device(some))):
        matched = (function(at, at, RADIUS, matched=True).cpu() - 4).exp()
        torch.testing.assert_close(matched, torch.tensor([2.0, 2.0, 3.0]))
        other = (function(at, at, RADIUS, matched=False).cpu() - 4).exp()
        torch.testing.assert_close(other, torch.tensor([1.0, 1.0, 2.0]))


@pytest.mark.parametrize("function", [logsumexp_apart, by_kernel])
def test_where_nothing_counts_there_is_no_gradient(function):
    each = on_device(Samples(torch.ones(2, 4), torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)))
    out = torch.logaddexp(function(each, each, RADIUS, matched=False), torch.ones(2, device=DEVICE))
    out.sum().backward()
    torch.testing.assert_close(out.cpu(), torch.ones(2))
    assert not each.features.grad.any()
