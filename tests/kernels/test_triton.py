"""The Triton kernels against the definition in float64: on the GPU, or else in Triton's interpreter."""

from contextlib import nullcontext

import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.conv import point_conv
from pcreg.kernels.triplets import Triplets
from pcreg.runtime.device import deterministic
from tests.kernels.clouds import DEVICE, ON_GPU, native_triplets, needs_gpu, random_batch, tiled

pytest.importorskip("triton", reason="no triton for this platform")
pytestmark = pytest.mark.usefixtures("bfloat16_in_the_interpreter", "by_triton")

# Largest relative error, in the norm, of forward and both gradients.
TOLERANCE = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 1e-2}
CHANNELS = [1, 7, 32, 33, 64, 96, 128, 256]
PAIRS = list(zip(CHANNELS, CHANNELS[3:] + CHANNELS[:3], strict=True))
MANY = 10**6 if ON_GPU else 1023  # triplets


def made_up(T, n_out, n_in, n_cells):
    generator = torch.Generator().manual_seed(0)
    i = torch.randint(max(n_out, 1), (T,), generator=generator)
    j = torch.randint(max(n_in, 1), (T,), generator=generator)
    k = torch.randint(n_cells, (T,), generator=generator)
    ijk = (each.to(DEVICE) for each in (i, j, k))
    return tiled(Triplets.from_unsorted(*ijk, n_out, n_in, n_cells))


def check(triplets, C, M, precision="float32"):
    dtype = getattr(torch, precision)
    generator = torch.Generator().manual_seed(0)

    def values(*shape):
        return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_()

    features = values(triplets.n_in, C)
    weight = values(triplets.n_cells, 1, C, M)
    grad_out = values(triplets.n_out, M).detach()
    out = point_conv(features, weight, triplets)
    grads = torch.autograd.grad(out, (features, weight), grad_out)

    exact_inputs = [tensor.detach().double().requires_grad_() for tensor in (features, weight)]
    exact = reference.mvmr(*exact_inputs, triplets)
    exact_grads = torch.autograd.grad(exact, exact_inputs, grad_out.double())
    for result, expected in zip((out, *grads), (exact, *exact_grads), strict=True):
        assert result.dtype == dtype
        error = (result.double() - expected).norm()
        assert error <= TOLERANCE[precision] * expected.norm()


@pytest.mark.parametrize(("C", "M"), PAIRS if ON_GPU else [(1, 33), (33, 96), (128, 7), (256, 32)])
def test_channels(C, M):
    check(made_up(63, 40, 50, 5), C, M)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize(("C", "M"), PAIRS if ON_GPU else [(33, 1), (96, 128)])
def test_precisions(C, M, precision):
    check(made_up(MANY, 5000, 6000, 27) if ON_GPU else made_up(63, 40, 50, 5), C, M, precision)


@pytest.mark.parametrize(("T", "n_cells"), [(0, 27), (1, 1), (63, 343), (MANY, 1), (MANY, 27), (MANY, 125)])
def test_numbers_of_triplets_and_cells(T, n_cells):
    C, M = (1, 8) if n_cells > 100 else (7, 33)
    check(made_up(T, max(T // 5, 3), 70, n_cells), C, M)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_buckets_of_up_to_nine_points(precision):
    triplets = made_up(1023, 130, 400, 2)
    assert triplets.tiles.shared_size.max() >= 9
    check(triplets, 33, 32, precision)


@pytest.mark.parametrize(("n_out", "n_in"), [(0, 5), (5, 0)])
def test_empty_clouds(n_out, n_in):
    check(made_up(0, n_out, n_in, 27), 7, 8)


def test_points_seen_from_one_another_need_no_transposed_triplets():
    points, lengths = (each.to(DEVICE) for each in random_batch([25, 0, 35]))
    triplets = native_triplets(points, points, lengths, lengths, 0.2, 3)
    assert triplets.symmetric
    check(triplets, 16, 8)
    assert not triplets._transposed


def test_noncontiguous_features_and_weights():
    triplets = made_up(63, 40, 50, 5)
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(7, 50, generator=generator).to(DEVICE).T.requires_grad_()
    weight = torch.randn(8, 7, 1, 5, generator=generator).to(DEVICE).permute(3, 2, 1, 0).requires_grad_()
    copies = [
        tensor.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
        for tensor in (features, weight)
    ]
    results = []
    for inputs in ((features, weight), copies):
        out = point_conv(*inputs, triplets)
        results.append((out, *torch.autograd.grad(out.T, inputs, torch.ones_like(out.T))))
    for result, expected in zip(*results, strict=True):
        torch.testing.assert_close(result, expected)


def test_a_program_takes_several_tiles():
    """With more tiles than programs the scratch memory of shared buckets is reused."""
    triplets = made_up(3000, 700, 90, 3)
    assert triplets.tiles.max_shared > 0
    check(triplets, 7, 128)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the interpreter
def test_infinity_is_not_hidden():
    triplets = made_up(63, 40, 50, 27)
    features = torch.ones(50, 8, device=DEVICE)
    features[triplets.j[0]] = torch.inf
    out = point_conv(features, torch.ones(27, 1, 8, 8, device=DEVICE), triplets)
    assert not out[triplets.i[0].long()].isfinite().any()
    assert out.isfinite().all(1).any()


@needs_gpu
def test_results_are_bit_equal():
    triplets = made_up(10**5, 5000, 6000, 343)
    features, weight = torch.randn(6000, 64, device=DEVICE), torch.randn(343, 1, 64, 64, device=DEVICE)
    results = []
    for _ in range(5):
        inputs = features.clone().requires_grad_(), weight.clone().requires_grad_()
        out = point_conv(*inputs, triplets)
        results.append((out, *torch.autograd.grad(out.square().sum(), inputs)))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


@needs_gpu
def test_offsets_beyond_two_to_the_31():
    n = 2**25 + 5  # times 64 channels: 2^31 elements and some
    rows = torch.tensor([0, 7, n - 1], device=DEVICE)
    triplets = tiled(Triplets.from_unsorted(rows, rows, torch.zeros_like(rows), n, n, 1))
    features = torch.zeros(n, 64, dtype=torch.float16, device=DEVICE)
    features[-1] = 1
    weight = torch.ones(1, 1, 64, 64, dtype=torch.float16, device=DEVICE)
    for settings in (nullcontext(), deterministic()):
        with settings:
            out = point_conv(features, weight, triplets)
        assert out[-1].eq(64).all()
        assert out[:-1].eq(0).all()


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    triplets = made_up(1023, 300, 300, 27)
    features = torch.randn(300, 32, device=DEVICE, requires_grad=True)
    weight = torch.randn(27, 1, 32, 32, device=DEVICE, requires_grad=True)
    with torch.autocast("cuda", dtype):
        out = point_conv(features, weight, triplets)
    assert out.dtype == dtype
    grads = torch.autograd.grad(out.float().sum(), (features, weight))
    assert all(grad.dtype == torch.float32 for grad in grads)


@needs_gpu
@pytest.mark.parametrize("n_cells", [27, 343])
def test_cuda_graph_of_forward_and_backward(n_cells):
    triplets = made_up(10**4, 900, 800, n_cells)
    features = torch.randn(800, 32, device=DEVICE, requires_grad=True)
    weight = torch.randn(n_cells, 1, 32, 64, device=DEVICE, requires_grad=True)

    def step():
        with deterministic():
            out = point_conv(features, weight, triplets)
            return out, *torch.autograd.grad(out.square().sum(), (features, weight))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        features.copy_(torch.randn_like(features))
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(captured, step(), strict=True))
