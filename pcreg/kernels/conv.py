"""point_conv: convolution over triplets, with its gradients.

The input gradient is the same operator on the transposed triplets with the transposed weight.
"""

import torch
from torch import Tensor

from pcreg.kernels.dataflow import arrange
from pcreg.kernels.dispatch import mvmr, tf32_is_allowed, vvor
from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.triplets import Triplets


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
      of its cloud alone. Sparse neighbourhoods, such as a decoder's, and small clouds are slower then
      (docs/benchmarks/operators.md). Large dense ones, and all without gradients, are bit-equal in any case.
    Autocast applies; there are no second derivatives. `epilogue` is for inference, without gradients.
    torch.compile breaks its graph here. Raises ValueError when the shapes, dtypes or devices of what is
    given do not fit.
    """
    _check(features, weight, triplets)
    if torch.is_autocast_enabled(features.device.type) and features.dtype != torch.float64:
        features = features.to(torch.get_autocast_dtype(features.device.type))
    elif features.dtype != weight.dtype:
        raise ValueError(f"features are {features.dtype} and weight is {weight.dtype}; cast one of them")
    differentiable = torch.is_grad_enabled() and (features.requires_grad or weight.requires_grad)
    arrangement = arrange(triplets, features.dtype, deterministic or not differentiable)
    tf32 = tf32_is_allowed() if tf32 is None else tf32
    if epilogue is not NOTHING:
        if differentiable:
            raise ValueError("an epilogue is for inference; use it under torch.no_grad()")
        epilogue.check(triplets.n_out, weight.shape[1] * weight.shape[3])
    if not differentiable:
        with torch.no_grad():
            weight = weight.to(features.dtype)
            return mvmr(features, weight, triplets, arrangement, tf32, deterministic, epilogue)
    back, back_arrangement = triplets, arrangement  # symmetric triplets are their own way back
    if features.requires_grad and not triplets.symmetric:
        back = triplets.transposed
        back_arrangement = arrange(back, features.dtype, deterministic)
    return _PointConv.apply(
        features, weight, triplets, arrangement, back, back_arrangement, tf32, deterministic
    )


class _PointConv(torch.autograd.Function):
    """The product and both gradients, without torch's dispatcher, for which a step on small clouds waits.

    The weight is cast to the dtype of the features here; its gradient is rounded once, to its own dtype.
    """

    @staticmethod
    def forward(ctx, features, weight, triplets, arrangement, back, back_arrangement, tf32, deterministic):
        ctx.weight_dtype, weight = weight.dtype, weight.to(features.dtype)
        ctx.save_for_backward(features, weight)
        ctx.there, ctx.back = (triplets, arrangement), (back, back_arrangement)
        ctx.tf32, ctx.deterministic = tf32, deterministic
        return mvmr(features, weight, triplets, arrangement, tf32, deterministic)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_out):
        features, weight = ctx.saved_tensors
        triplets, arrangement = ctx.there
        grad_features = grad_weight = None
        if ctx.needs_input_grad[0]:
            # Symmetric triplets are their own transposed ones, with the cells of the weight exchanged: in the
            # layout that the kernel takes, so that it needs no other copy.
            weight_t = triplets.symmetric.transposed_weight(weight.mT)
            grad_features = mvmr(grad_out, weight_t, *ctx.back, ctx.tf32, ctx.deterministic)
        if ctx.needs_input_grad[1]:
            grad_weight = vvor(features, grad_out, triplets, arrangement, weight.shape[1], ctx.weight_dtype)
        return grad_features, grad_weight, *[None] * 6


def _check(features: Tensor, weight: Tensor, triplets: Triplets) -> None:
    if weight.dim() != 4:
        raise ValueError(f"weight must be (K, G, C/G, M/G), got {tuple(weight.shape)}")
    K, G, C, _ = weight.shape
    if triplets.n_cells != K:
        raise ValueError(
            f"weight has {K} kernel cells and the triplets {triplets.n_cells}; build both for one kernel size"
        )
    if tuple(features.shape) != (triplets.n_in, G * C):
        raise ValueError(
            f"features must be ({triplets.n_in}, {G * C}) for this weight and these triplets, "
            f"got {tuple(features.shape)}"
        )
    if not features.device == weight.device == triplets.i.device:
        devices = f"{features.device}, {weight.device} and {triplets.i.device}"
        raise ValueError(f"features, weight and triplets are on {devices}; move them to one with .to()")
