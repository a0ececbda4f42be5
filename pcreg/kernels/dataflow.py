"""Which way a convolution is computed: the one place where that is chosen.

    plain PyTorch           CPU, and float64                    arranged as Buckets
    output-stationary       most buckets are occupied,          arranged as Tiles
                            or the result has to repeat,
                            as where nothing is differentiated
    weight-stationary       few are                             as the triplets are

The output-stationary kernel multiplies a row per bucket (k, i), occupied or not: K N_out of them,
where the weight-stationary one multiplies T rows and adds as many by atomics. On an H200 they take
equally long where K N_out / T is about 6 in half precision and 2 in float32
(docs/benchmarks/operators.md). Between points of one level it is 1.3 to 1.6 indoors and 2.4 to 3.2 in
LiDAR scans (5.8 with 125 cells); on a decoder's way up, 7 to 10. The choice depends on shapes and dtypes
alone.
"""

import torch

from pcreg.kernels.tiles import Tiles
from pcreg.kernels.triplets import Buckets, Triplets

MAX_ROWS_PER_TRIPLET = {torch.float16: 6, torch.bfloat16: 6, torch.float32: 2}

Arrangement = Buckets | Tiles | None


def arrange(triplets: Triplets, dtype: torch.dtype, deterministic: bool = False) -> Arrangement:
    """The arrangement of `triplets` with which to convolve features of this dtype, derived once.

    With `deterministic` it is one whose result repeats bit by bit.
    """
    max_rows = MAX_ROWS_PER_TRIPLET.get(dtype)
    if max_rows is None or not triplets.i.is_cuda:
        return triplets.buckets
    occupied = triplets.n_cells * triplets.n_out <= max_rows * len(triplets)
    return triplets.tiles if occupied or deterministic else None


def some_dtype_takes_tiles(n_cells: int, n_out: int, n_triplets: int) -> bool:
    """Whether `arrange` asks for Tiles of such triplets, for features of one dtype or another.

    Where nothing is differentiated it always does, as results repeat there.
    """
    occupied = n_cells * n_out <= max(MAX_ROWS_PER_TRIPLET.values()) * n_triplets
    return occupied or not torch.is_grad_enabled()
