"""point_conv: convolution over triplets as a torch custom op, with its gradients.

The input gradient is the same operator on the transposed triplets with the transposed weight.
"""

import torch
from torch import Tensor

from kernels.mvmr import mvmr
from kernels.triplets import Triplets
from kernels.vvor import vvor


def point_conv(features: Tensor, weight: Tensor, triplets: Triplets) -> Tensor:
    """Convolve features (N_in, C) with weight (K, G, C/G, M/G) -> (N_out, M).

    Differentiable in features and weight. Raises ValueError when the shapes or dtypes of the three
    do not fit.
    """
    _check(features, weight, triplets)
    needs_transposed = features.requires_grad and torch.is_grad_enabled()
    transposed = triplets.transposed.tensors() if needs_transposed else []
    return _point_conv(features, weight, triplets.tensors(), transposed, triplets.n_out)


@torch.library.custom_op("pcreg::point_conv", mutates_args=())
def _point_conv(
    features: Tensor, weight: Tensor, triplets: list[Tensor], transposed: list[Tensor], n_out: int
) -> Tensor:
    return mvmr(features, weight, Triplets.from_tensors(triplets, n_out, len(features)))


@_point_conv.register_fake
def _(features, weight, triplets, transposed, n_out):
    return features.new_empty(n_out, weight.shape[1] * weight.shape[3])


@torch.library.custom_op("pcreg::weight_gradient", mutates_args=())
def _weight_gradient(features: Tensor, grad_out: Tensor, triplets: list[Tensor], groups: int) -> Tensor:
    return vvor(features, grad_out, Triplets.from_tensors(triplets, len(grad_out), len(features)), groups)


@_weight_gradient.register_fake
def _(features, grad_out, triplets, groups):
    C, M = features.shape[1], grad_out.shape[1]
    return features.new_empty(triplets[2].shape[0] - 1, groups, C // groups, M // groups)


def _save_for_backward(ctx, inputs, output):
    features, weight, triplets, transposed, _ = inputs
    ctx.save_for_backward(features, weight, *triplets, *transposed)
    ctx.n_triplets = len(triplets)


def _backward(ctx, grad_out):
    features, weight, *tensors = ctx.saved_tensors
    triplets, transposed = tensors[: ctx.n_triplets], tensors[ctx.n_triplets :]
    grad_out = grad_out.contiguous()
    grad_features = grad_weight = None
    if ctx.needs_input_grad[0]:
        weight_t = weight.transpose(2, 3).contiguous()
        grad_features = _point_conv(grad_out, weight_t, transposed, triplets, len(features))
    if ctx.needs_input_grad[1]:
        grad_weight = _weight_gradient(features, grad_out, triplets, weight.shape[1])
    return grad_features, grad_weight, [None] * len(triplets), [None] * len(transposed), None


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
    if features.dtype != weight.dtype:
        raise ValueError(f"features are {features.dtype} and weight is {weight.dtype}; cast one of them")
