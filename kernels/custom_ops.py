"""The convolution and its weight gradient as torch custom ops, for graphs that torch.compile makes.

A custom op takes tensors and numbers alone, so triplets and their arrangement are packed into lists.
"""

import torch
from torch import Tensor

from pcreg.kernels.dataflow import Arrangement
from pcreg.kernels.dispatch import mvmr, tf32_is_allowed, vvor
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Buckets, Symmetry, Triplets


def pack(triplets: Triplets, arrangement: Arrangement) -> tuple[list[Tensor], list[int]]:
    """Both as the tensors and integers that a custom op takes."""
    tensors = [triplets.i, triplets.j, triplets.k_offsets]
    sizes = [triplets.n_out, triplets.n_in]
    if isinstance(arrangement, Buckets):
        tensors += [arrangement.i, arrangement.offsets, arrangement.k_offsets]
    elif isinstance(arrangement, Tiles):
        tensors += arrangement.tensors()
        sizes.append(arrangement.most_shared)
    return tensors, sizes


def unpack(tensors: list[Tensor], sizes: list[int]) -> tuple[Triplets, Arrangement]:
    """What `pack` packed."""
    triplets = Triplets(*tensors[:3], *sizes[:2])
    if len(sizes) == 3:
        return triplets, Tiles(*tensors[3:], sizes[2])
    return triplets, Buckets(*tensors[3:]) if len(tensors) > 3 else None


@torch.library.custom_op("pcreg::point_conv", mutates_args=())
def point_conv_op(
    features: Tensor,
    weight: Tensor,
    triplets: list[Tensor],
    sizes: list[int],
    transposed: list[Tensor],
    transposed_sizes: list[int],
    symmetric: int,  # a Symmetry
    tf32: bool | None,
    deterministic: bool,
) -> Tensor:
    if tf32 is None:  # read here, as a compiled graph cannot read it
        tf32 = tf32_is_allowed()
    return mvmr(features, weight, *unpack(triplets, sizes), tf32, deterministic)


@point_conv_op.register_fake
def _(features, weight, triplets, sizes, transposed, transposed_sizes, symmetric, tf32, deterministic):
    return features.new_empty(sizes[0], weight.shape[1] * weight.shape[3])


@torch.library.custom_op("pcreg::weight_gradient", mutates_args=())
def weight_gradient_op(
    features: Tensor, grad_out: Tensor, triplets: list[Tensor], sizes: list[int], groups: int
) -> Tensor:
    return vvor(features, grad_out, *unpack(triplets, sizes), groups)


@weight_gradient_op.register_fake
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
        # Symmetric triplets are their own transposed ones, seen from the other end.
        weight_t = Symmetry(ctx.symmetric).transposed_weight(weight).mT
        grad_features = point_conv_op(
            grad_out,
            weight_t,
            transposed,
            ctx.transposed_sizes,
            [],
            [0, 0],
            Symmetry.NONE,
            ctx.tf32,
            ctx.deterministic,
        )
    if ctx.needs_input_grad[1]:
        grad_weight = weight_gradient_op(features, grad_out, triplets, ctx.sizes, weight.shape[1])
    none = [None] * len(triplets), None, [None] * len(transposed), None, None, None, None
    return grad_features, grad_weight, *none


point_conv_op.register_autograd(_backward, setup_context=_save_for_backward)
