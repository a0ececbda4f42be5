"""Epilogues of convolutions, and tiles shared among programs, on a GPU or else in Triton's interpreter."""

import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.conv import point_conv
from pcreg.kernels.epilogue import Epilogue
from pcreg.kernels.triplets import Triplets
from tests.kernels.clouds import DEVICE, ON_GPU, random_triplets
from tests.kernels.test_batch_norm import norm_of

output_stationary = pytest.importorskip(
    "pcreg.kernels.triton.output_stationary", reason="no triton for this platform"
)
pytestmark = pytest.mark.usefixtures("bfloat16_in_the_interpreter")

TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2}


def values(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def epilogues(N, M, dtype):
    scale, shift, residual = values(M, seed=2), values(M, seed=3), values(N, M, dtype=dtype, seed=4)
    norm = norm_of(scale, shift).eval()
    return {
        "norm": Epilogue(norm),
        "norm, residual, relu": Epilogue(norm, residual=residual, relu=True),
        "bias, relu": Epilogue(bias=shift, relu=True),
        "residual": Epilogue(residual=residual),
    }


@pytest.fixture(params=[False, True], ids=["whole", "shared"])
def shared(request, monkeypatch):
    """Share tiles, as with many more processors than tiles."""
    if request.param:
        monkeypatch.setattr(output_stationary, "processors", lambda device: 64)
    output_stationary._plan.cache_clear()
    yield request.param
    output_stationary._plan.cache_clear()


@pytest.mark.parametrize("kind", ["norm", "norm, residual, relu", "bias, relu", "residual"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("M", [7, 150] if ON_GPU else [7])
@torch.no_grad()
def test_epilogues_are_what_torch_computes_afterwards(by_triton, shared, kind, dtype, M):
    triplets = random_triplets(30, 40, device=DEVICE)
    features, weight = values(40, 9, dtype=dtype), values(27, 1, 9, M, dtype=dtype)
    epilogue = epilogues(30, M, dtype)[kind]
    out = point_conv(features, weight, triplets, epilogue=epilogue)
    exact = reference.mvmr(features.float(), weight.float(), triplets)
    expected = epilogue.apply(exact).float()
    assert out.dtype == dtype
    assert (out.float() - expected).norm() <= TOLERANCE[dtype] * expected.norm()


@pytest.mark.parametrize(("C", "M", "kernel_size"), [(1, 33, 5), (7, 150, 3)])
@torch.no_grad()
def test_shares_of_a_tile_add_up(shared, C, M, kernel_size):
    triplets = random_triplets(150, 90, kernel_size=kernel_size, device=DEVICE)
    features, weight = values(90, C), values(kernel_size**3, 1, C, M)
    out = output_stationary.mvmr(features, weight, triplets)
    expected = reference.mvmr(features, weight, triplets)
    assert (out - expected).norm() <= 1e-5 * expected.norm()
    again = output_stationary.mvmr(features, weight, triplets)
    assert torch.equal(out, again)


@pytest.mark.parametrize("n", [0, 150])
@torch.no_grad()
def test_identity_triplets_make_a_linear_layer(by_triton, n):
    layer = torch.nn.Linear(9, 5).to(DEVICE)
    features = values(n, 9)
    identity = Triplets.identity(n, features.device)
    out = point_conv(features, layer.weight.T[None, None], identity, epilogue=Epilogue(bias=layer.bias))
    torch.testing.assert_close(out, layer(features), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"residual": torch.zeros(1, 8)}, r"residual is \(1, 8\)"),
        ({"bias": torch.zeros(7)}, r"vector of the epilogue is \(7,\)"),
    ],
)
@torch.no_grad()
def test_epilogues_that_do_not_fit_are_refused(wrong, sentence):
    triplets, features = random_triplets(5, 6), torch.zeros(6, 4)
    with pytest.raises(ValueError, match=sentence):
        point_conv(features, torch.zeros(27, 1, 4, 8), triplets, epilogue=Epilogue(**wrong))


def test_epilogues_with_gradients_are_refused():
    features = torch.zeros(6, 4, requires_grad=True)
    with pytest.raises(ValueError, match="for inference"):
        point_conv(features, torch.zeros(27, 1, 4, 8), random_triplets(5, 6), epilogue=Epilogue(relu=True))


@torch.no_grad()
def test_the_relu_does_not_hide_nan(by_triton):
    triplets = random_triplets(5, 5, device=DEVICE)
    features = torch.full((5, 4), torch.nan, device=DEVICE)
    out = point_conv(features, values(27, 1, 4, 4), triplets, epilogue=Epilogue(relu=True))
    assert out.isnan().any()
