"""point_conv: convolution over triplets as a torch custom op, with its gradients.

The input gradient is the same operator on the transposed triplets with the transposed weight.
"""

import torch
from torch import Tensor

from kernels.dataflow import arrange, mvmr, pack, unpack, vvor
from kernels.epilogue import NOTHING, Epilogue
from kernels.triplets import Triplets


def point_conv(
    features: Tensor,
    weight: Tensor,
    triplets: Triplets,
    tf32: bool | None = False,
    deterministic: bool = False,
    epilogue: Epilogue = NOTHING,
) -> Tensor:
    """Convolve features (N_in, C) with weight (K, G, C/G, M/G) -> (N_out, M), differentiable in both.

    Sums are float32, or float64 where the features are float64; half-precision features that share a
    bucket may be rounded once more, in their own dtype, before they are multiplied. On a GPU,
    - `tf32` multiplies float32 features with ten bits of mantissa, forward and for the input gradient;
      None: if torch.backends.cuda.matmul.fp32_precision says so when it runs;
    - `deterministic` makes outputs and gradients bit-equal between runs, and each row's output that
      of its cloud alone. Sparse neighbourhoods, such as a decoder's, and small clouds are slower then;
      large dense ones repeat in any case (docs/benchmarks.md).
    Autocast applies; there are no second derivatives. `epilogue` is for inference: with it, nothing is
    differentiable. Raises ValueError when the shapes, dtypes or devices of the three do not fit.
    """
    _check(features, weight, triplets)
    if torch.is_autocast_enabled(features.device.type) and features.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(features.device.type)
        features, weight = features.to(dtype), weight.to(dtype)
    if features.dtype != weight.dtype:
        raise ValueError(f"features are {features.dtype} and weight is {weight.dtype}; cast one of them")
    arrangement = arrange(triplets, features.dtype, deterministic)
    differentiable = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    if epilogue is not NOTHING or not (differentiable or torch.compiler.is_compiling()):
        # Straight to the operator: in small clouds the way through torch's dispatcher takes longer than it.
        if tf32 is None:
            tf32 = _tf32_is_allowed()
        with torch.no_grad():
            return mvmr(features, weight, triplets, arrangement, tf32, deterministic, epilogue)
    forward = pack(triplets, arrangement)
    backward = [], [0, 0]  # not empty: torch would take that for a list of tensors
    if features.requires_grad and torch.is_grad_enabled():
        if triplets.symmetric:
            backward = forward
        else:
            backward = pack(triplets.transposed, arrange(triplets.transposed, features.dtype, deterministic))
    return _point_conv(features, weight, *forward, *backward, triplets.symmetric, tf32, deterministic)


def _tf32_is_allowed() -> bool:
    return torch.backends.cuda.matmul.fp32_precision == "tf32"


@torch.library.custom_op("pcreg::point_conv", mutates_args=())
def _point_conv(
    features: Tensor,
    weight: Tensor,
    triplets: list[Tensor],
    sizes: list[int],
    transposed: list[Tensor],
    transposed_sizes: list[int],
    symmetric: bool,
    tf32: bool | None,
    deterministic: bool,
) -> Tensor:
    if tf32 is None:  # read here, as a compiled graph cannot read it
        tf32 = _tf32_is_allowed()
    return mvmr(features.contiguous(), weight, *unpack(triplets, sizes), tf32, deterministic)


@_point_conv.register_fake
def _(features, weight, triplets, sizes, transposed, transposed_sizes, symmetric, tf32, deterministic):
    return features.new_empty(sizes[0], weight.shape[1] * weight.shape[3])


@torch.library.custom_op("pcreg::weight_gradient", mutates_args=())
def _weight_gradient(
    features: Tensor, grad_out: Tensor, triplets: list[Tensor], sizes: list[int], groups: int
) -> Tensor:
    return vvor(features.contiguous(), grad_out.contiguous(), *unpack(triplets, sizes), groups)


@_weight_gradient.register_fake
def _(features, grad_out, triplets, sizes, groups):
    C, M = features.shape[1], grad_out.shape[1]
    return features.new_empty(triplets[2].shape[0] - 1, groups, C // groups, M // groups)


def _save_for_backward(ctx, inputs, output):
    features, weight, triplets, ctx.sizes, transposed, ctx.transposed_sizes, *flags = inputs
    ctx.symmetric, ctx.tf32, ctx.deterministic = flags
    ctx.save_for_backward(features, weight, *triplets, *transposed)
    ctx.n_tensors = len(triplets)


def _backward(ctx, grad_out):
    features, weight, *tensors = ctx.saved_tensors
    triplets, transposed = tensors[: ctx.n_tensors], tensors[ctx.n_tensors :]
    grad_features = grad_weight = None
    if ctx.needs_input_grad[0]:
        # Symmetric triplets are their own transposed ones, seen through the opposite cell.
        weight_t = (weight.flip(0) if ctx.symmetric else weight).mT
        grad_features = _point_conv(
            grad_out,
            weight_t,
            transposed,
            ctx.transposed_sizes,
            [],
            [0, 0],
            False,
            ctx.tf32,
            ctx.deterministic,
        )
    if ctx.needs_input_grad[1]:
        grad_weight = _weight_gradient(features, grad_out, triplets, ctx.sizes, weight.shape[1])
    none = [None] * len(triplets), None, [None] * len(transposed), None, None, None, None
    return grad_features, grad_weight, *none


_point_conv.register_autograd(_backward, setup_context=_save_for_backward)


def _check(features: Tensor, weight: Tensor, triplets: Triplets) -> None:
    if weight.dim() != 4:
        raise ValueError(f"weight must be (K, G, C/G, M/G), got {tuple(weight.shape)}")
    K, G, C, _ = weight.shape
    if triplets.n_cells != K:
        raise ValueError(
            f"weight has {K} kernel cells and the triplets {triplets.n_cells}; build both for one fineness"
        )
    if tuple(features.shape) != (triplets.n_in, G * C):
        raise ValueError(
            f"features must be ({triplets.n_in}, {G * C}) for this weight and these triplets, "
            f"got {tuple(features.shape)}"
        )
    if not features.device == weight.device == triplets.i.device:
        devices = f"{features.device}, {weight.device} and {triplets.i.device}"
        raise ValueError(f"features, weight and triplets are on {devices}; move them to one with .to()")
