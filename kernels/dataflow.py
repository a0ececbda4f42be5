"""Which way a convolution is computed: the one place where that is chosen.

    plain PyTorch           CPU, and float64                    arranged as Buckets
    output-stationary       most buckets are occupied,          arranged as Tiles
                            or the result has to repeat
    weight-stationary       few are                             as the triplets are

The output-stationary kernel multiplies a row per bucket (k, i), occupied or not: K N_out of them,
where the weight-stationary one multiplies T rows and adds as many by atomics. On an H200 they take
equally long where K N_out / T is about 6 in half precision and 2 in float32 (docs/benchmarks.md). Between
points of one level it is 1.3 to 1.6 indoors and 2.4 to 3.2 in LiDAR scans (5.8 with 125 cells); on a
decoder's way up, 7 to 10. The choice depends on shapes and dtypes alone, so a compiled graph keeps it.
"""

import torch
from torch import Tensor

from kernels import bucket_sums
from kernels.epilogue import NOTHING, Epilogue
from kernels.launch import aligned
from kernels.tiles import Tiles
from kernels.triplets import Buckets, Triplets

MOST_ROWS_PER_TRIPLET = {torch.float16: 6, torch.bfloat16: 6, torch.float32: 2}

Arrangement = Buckets | Tiles | None


def arrange(triplets: Triplets, dtype: torch.dtype, deterministic: bool = False) -> Arrangement:
    """The arrangement of `triplets` with which to convolve features of this dtype, derived once.

    With `deterministic` it is one whose result repeats bit by bit.
    """
    most = MOST_ROWS_PER_TRIPLET.get(dtype)
    if most is None or not triplets.i.is_cuda:
        return triplets.buckets
    occupied = triplets.n_cells * triplets.n_out <= most * len(triplets)
    return triplets.tiles if occupied or deterministic else None


def some_dtype_takes_tiles(n_cells: int, n_out: int, n_triplets: int) -> bool:
    """Whether `arrange` asks for Tiles of such triplets, for features of one dtype or another."""
    return n_cells * n_out <= max(MOST_ROWS_PER_TRIPLET.values()) * n_triplets


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
        return epilogue.apply(bucket_sums.mvmr(features, weight, triplets, arrangement))
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from kernels import output_stationary, weight_stationary

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
        return bucket_sums.vvor(features, grad_out, triplets, arrangement, groups)
    from kernels import outer_products

    return outer_products.vvor(aligned(features), aligned(grad_out), triplets, groups)


def tf32_is_allowed() -> bool:
    """Torch's own switch, for who leaves the choice to it."""
    return torch.backends.cuda.matmul.fp32_precision == "tf32"
