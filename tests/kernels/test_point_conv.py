from functools import partial

import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.conv import point_conv
from tests.kernels.clouds import DEVICE, native_triplets, random_batch, random_normals, random_triplets


def problem(n_out=33, n_in=50, C=6, M=8, kernel_size=3, dtype=torch.float64, fan_in=0.35, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    triplets = random_triplets(n_out, n_in, kernel_size=kernel_size, fan_in=fan_in, device=device)
    shapes = (n_in, C), (kernel_size**3, 1, C, M)
    values = (torch.randn(shape, generator=generator, dtype=dtype).to(device) for shape in shapes)
    return *values, triplets


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize(("n", "C", "M"), [(0, 7, 33), (1, 1, 1), (63, 7, 33), (200, 64, 32)])
def test_operators_equal_their_definitions(kernel_size, n, C, M):
    features, weight, triplets = problem(n, n, C, M, kernel_size, torch.float32)
    grad_out = torch.randn(n, M, generator=torch.Generator().manual_seed(9))
    result = point_conv(features, weight.requires_grad_(), triplets)
    (grad,) = torch.autograd.grad(result, weight, grad_out)
    exact = reference.mvmr(features.double(), weight.double(), triplets)
    exact_grad = reference.vvor(features.double(), grad_out.double(), triplets)
    for found, expected in ((result, exact), (grad, exact_grad)):
        assert (found.double() - expected).norm() <= 1e-6 * expected.norm()


def within_a_cloud(*normals):
    """Triplets within a cloud: transposed they are the same triplets, with other cells."""
    points, lengths = random_batch([11])
    return native_triplets(points, points, lengths, lengths, 0.25, 3, 0.7, normals or None)


@pytest.mark.parametrize(
    "triplets",
    [
        random_triplets(9, 11, fan_in=0.7),
        random_triplets(9, 11, fan_in=0.7).transposed,
        within_a_cloud(),
        within_a_cloud(*[random_normals(11)] * 2),
    ],
    ids=["of two clouds", "transposed", "of one cloud", "by heights"],
)
def test_gradients(triplets):
    inputs = torch.randn(triplets.n_in, 2, dtype=torch.float64), torch.randn(27, 1, 2, 3, dtype=torch.float64)
    assert len(triplets) > 20
    convolve = partial(point_conv, triplets=triplets)
    assert torch.autograd.gradcheck(convolve, [each.requires_grad_() for each in inputs])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_sums_and_the_weight_gradient_alone_are_rounded_once(dtype):
    device = DEVICE if dtype == torch.float32 else "cpu"  # a GPU rounds half precision more than once
    features, weight, triplets = problem(40, 50, 4, 6, fan_in=0.9, dtype=dtype, device=device)
    weight.requires_grad_()
    out = point_conv(features, weight, triplets)
    (grad,) = torch.autograd.grad(out.sum(), weight)
    exact = reference.mvmr(features.double(), weight.double(), triplets)
    exact_grad = reference.vvor(features.double(), torch.ones_like(exact), triplets)
    for result, expected in ((out, exact), (grad, exact_grad)):
        error = (result.double() - expected).abs()
        assert (error <= 0.51 * torch.finfo(dtype).eps * expected.abs() + 1e-4).all()


@pytest.mark.parametrize("C", [1, 32])
def test_a_batch_is_bit_equal_to_its_clouds_one_by_one(C):
    sizes = [1, 5, 40, 300]
    points, _ = random_batch([sum(sizes)])
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(sum(sizes), C, generator=generator)
    weight = torch.randn(27, 1, C, 32, generator=generator)

    def convolve(points, features, lengths):
        lengths = torch.tensor(lengths)
        return point_conv(features, weight, native_triplets(points, points, lengths, lengths, 0.15))

    apart = [
        convolve(p, x, [n]) for p, x, n in zip(points.split(sizes), features.split(sizes), sizes, strict=True)
    ]
    assert torch.equal(convolve(points, features, sizes), torch.cat(apart))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, w: (x[:-1], w), "features must be"),
        (lambda x, w: (x, w[:-1]), "kernel cells"),
        (lambda x, w: (x, w.float()), "cast one of them"),
        (lambda x, w: (x, w[:, 0]), "weight must be"),
        (lambda x, w: (x.to("meta"), w), "move them to one"),
    ],
)
def test_misfits_are_refused(change, message):
    features, weight, triplets = problem()
    with pytest.raises(ValueError, match=message):
        point_conv(*change(features, weight), triplets)
