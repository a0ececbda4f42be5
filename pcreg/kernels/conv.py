"""Convolution over triplets, with its gradients.

The input gradient is the same operator on the transposed triplets with the transposed weight. On a GPU a
convolution runs by tiles of output rows. On the CPU, and in float64, it is plain PyTorch: for each kernel
cell the features of a bucket (k, i) are summed, multiplied by W[k] once, and added to row i. On real scans a
bucket has 1.2 to 1.4 points, so that buckets save up to a third of the multiplications.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from pcreg.kernels.cpu.conv import find_buckets
from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.triplets import Triplets

HALF_OR_SINGLE = torch.float16, torch.bfloat16, torch.float32
MIN_ROWS = 16  # with fewer, MKL sums in another order: a small cloud's result would depend on its batch


def point_conv(features: Tensor, weight: Tensor, triplets: Triplets, epilogue: Epilogue = NOTHING) -> Tensor:
    """Sum W[k] x[j] over all triplets (i, j, k) into row i; differentiable in features and weight, once.

    Results and gradients repeat bit by bit. Autocast applies. With torch.use_deterministic_algorithms
    the output of a cloud is bit-equal in any batch; small clouds then take longer on a GPU.

    Args:
        features: (N_in, C), float16, bfloat16, float32 or float64.
        weight: (K, 1, C, M), of the dtype of the features unless autocast applies.
        triplets: With K kernel cells, from N_in rows to N_out.
        epilogue: Norm, shortcut and relu after the convolution, for inference, without gradients.

    Returns:
        (N_out, M) of the dtype of the features. Sums are float32, or float64 for float64 features;
        on a GPU the sums of half-precision features in a bucket are rounded before they are multiplied.

    Raises:
        ValueError: Shapes, dtypes or devices do not fit, or an epilogue is given where gradients are wanted.
    """
    _check(features, weight, triplets)
    if torch.is_autocast_enabled(features.device.type) and features.dtype != torch.float64:
        features = features.to(torch.get_autocast_dtype(features.device.type))
    elif features.dtype != weight.dtype:
        raise ValueError(f"features are {features.dtype} and weight is {weight.dtype}; cast one of them")
    differentiable = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    if epilogue is not NOTHING:
        if differentiable:
            raise ValueError("an epilogue is for inference; use it under torch.no_grad()")
        epilogue.check(triplets.n_out, weight.shape[3])
    if not differentiable:
        with torch.no_grad():
            weight = weight.to(features.dtype)
            return _mvmr(features, weight, triplets, epilogue)
    return _PointConv.apply(features, weight, triplets)


def runs_by_tiles(triplets: Triplets, dtype: torch.dtype) -> bool:
    """True if features of this dtype are convolved by tiles of output rows."""
    return triplets.i.is_cuda and dtype in HALF_OR_SINGLE


class _PointConv(torch.autograd.Function):
    """Convolution with gradients; an operator registered with PyTorch would be slower on small clouds."""

    @staticmethod
    def forward(ctx, features, weight, triplets):
        ctx.weight_dtype, weight = weight.dtype, weight.to(features.dtype)
        ctx.save_for_backward(features, weight)
        ctx.triplets = triplets
        return _mvmr(features, weight, triplets)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_out):
        (features, weight), triplets = ctx.saved_tensors, ctx.triplets
        grad_features = grad_weight = None
        if ctx.needs_input_grad[0]:
            # Transposing symmetric triplets equals exchanging the weights of their cells k and k'.
            back = triplets if triplets.symmetric else triplets.transposed
            weight_t = triplets.symmetric.transposed_weight(weight.mT)
            grad_features = _mvmr(grad_out, weight_t, back)
        if ctx.needs_input_grad[1]:
            grad_weight = _vvor(features, grad_out, triplets, ctx.weight_dtype)
        return grad_features, grad_weight, None


def _mvmr(features: Tensor, weight: Tensor, triplets: Triplets, epilogue: Epilogue = NOTHING) -> Tensor:
    """features (N_in, C), weight (K, 1, C, M) of one dtype -> (N_out, M), row i the sum of W[k] x[j]."""
    if runs_by_tiles(triplets, features.dtype):
        # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
        from pcreg.kernels.triton import output_stationary

        split = not torch.are_deterministic_algorithms_enabled()
        return output_stationary.mvmr(features, weight, triplets, split, epilogue)
    wide = torch.promote_types(features.dtype, torch.float32)
    weight = weight.to(wide)
    out = weight.new_zeros(triplets.n_out, weight.shape[3])
    for k, (i, sums) in enumerate(_bucket_sums(features.to(wide), triplets)):
        out.index_add_(0, i, _multiply(sums, weight[k]))
    return epilogue.apply(out).to(features.dtype)


def _vvor(features: Tensor, grad_out: Tensor, triplets: Triplets, dtype: torch.dtype) -> Tensor:
    """features (N_in, C), grad_out (N_out, M) -> (K, 1, C, M) of `dtype`, the sums of x[j] g[i]^T."""
    if runs_by_tiles(triplets, features.dtype):
        from pcreg.kernels.triton import weight_gradient

        return weight_gradient.vvor(features, grad_out, triplets, dtype)
    wide = torch.promote_types(features.dtype, torch.float32)
    grad_out = grad_out.to(wide)
    grads = [
        torch.bmm(sums[None].mT, grad_out.index_select(0, i)[None])
        for i, sums in _bucket_sums(features.to(wide), triplets)
    ]
    return torch.stack(grads).to(dtype)


def _check(features: Tensor, weight: Tensor, triplets: Triplets) -> None:
    if weight.dim() != 4 or weight.shape[1] != 1:
        raise ValueError(f"weight must be (K, 1, C, M), got {tuple(weight.shape)}")
    K, _, C, _ = weight.shape
    if triplets.n_cells != K:
        raise ValueError(
            f"weight has {K} kernel cells and the triplets {triplets.n_cells}; build both for one kernel size"
        )
    if tuple(features.shape) != (triplets.n_in, C):
        raise ValueError(
            f"features must be ({triplets.n_in}, {C}) for this weight and these triplets, "
            f"got {tuple(features.shape)}"
        )
    if not features.device == weight.device == triplets.i.device:
        devices = f"{features.device}, {weight.device} and {triplets.i.device}"
        raise ValueError(f"features, weight and triplets are on {devices}; move them to one with .to()")


def _multiply(rows: Tensor, matrix: Tensor) -> Tensor:
    """Product (P, M) of rows (P, C) and matrix (1, C, M)."""
    padding = MIN_ROWS - len(rows)
    if padding > 0:
        rows = torch.nn.functional.pad(rows, (0, 0, 0, padding))
    products = torch.bmm(rows[None], matrix)[0]
    return products[:-padding] if padding > 0 else products


def _bucket_sums(features: Tensor, triplets: Triplets) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each kernel cell, the output rows i (P_k,) int64 of its buckets and their sums (P_k, C)."""
    i, offsets, bounds = find_buckets(triplets.i.cpu().numpy(), triplets.k_offsets.cpu().numpy())
    rows = torch.from_numpy(i).long().to(features.device)  # with int32, index_add_ would add row by row
    firsts = torch.from_numpy(offsets).to(features.device)
    for (low, high), (_, j) in zip(pairwise(bounds.tolist()), triplets.segments(), strict=True):
        some = firsts[low : high + 1]
        sums = torch.nn.functional.embedding_bag(
            j, features, some - some[0], mode="sum", include_last_offset=True
        )
        yield rows[low:high], sums
