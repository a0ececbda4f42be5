"""MVMR and VVOR, by the backend that the arrangement of the triplets is made for."""

import torch
from torch import Tensor

from pcreg.kernels import plain_conv
from pcreg.kernels.alignment import aligned
from pcreg.kernels.dataflow import Arrangement
from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Buckets, Triplets


def mvmr(
    features: Tensor,
    weight: Tensor,
    triplets: Triplets,
    arrangement: Arrangement,
    tf32: bool = False,
    deterministic: bool = False,
    epilogue: Epilogue = NOTHING,
) -> Tensor:
    """out[i] += W[k] x[j] over all triplets: features (N_in, C), weight (K, G, C/G, M/G) -> (N_out, M).

    With `deterministic` a row does not depend, to the last bit, on the other rows of the arrangement.
    """
    if isinstance(arrangement, Buckets):
        return epilogue.apply(plain_conv.mvmr(features, weight, triplets, arrangement))
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton import output_stationary, weight_stationary

    features = aligned(features)
    if isinstance(arrangement, Tiles):
        sizes = triplets.n_out, tf32, not deterministic
        return output_stationary.mvmr(features, weight, triplets.j, arrangement, *sizes, epilogue)
    return weight_stationary.mvmr(features, weight, triplets, tf32, epilogue)


def vvor(
    features: Tensor, grad_out: Tensor, triplets: Triplets, arrangement: Arrangement, groups: int
) -> Tensor:
    """dW[k] += x[j] g[i]^T over all triplets: features (N_in, C), grad_out (N_out, M) -> (K, G, C/G, M/G)."""
    if isinstance(arrangement, Buckets):
        return plain_conv.vvor(features, grad_out, triplets, arrangement, groups)
    from pcreg.kernels.triton import weight_gradient

    return weight_gradient.vvor(aligned(features), aligned(grad_out), triplets, groups)


def tf32_is_allowed() -> bool:
    """Torch's own switch, for who leaves the choice to it."""
    return torch.backends.cuda.matmul.fp32_precision == "tf32"
