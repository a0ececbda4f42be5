"""Arrays into larger ones that stay: many copies, on a GPU by one launch."""

from typing import NamedTuple

from torch import Tensor


class PaddedCopy(NamedTuple):
    """`source` into the beginning of the rows of `target`, and what stands behind it there."""

    source: Tensor  # (..., n), of int32 or int64, contiguous like the target
    target: Tensor  # (..., m), m >= n, of the same dtype
    behind: int | None  # an int32; None: whatever stood there before


def copy_padded(copies: list[PaddedCopy]) -> None:
    """Make all copies, which lie on one device and are not empty."""
    if copies[0].target.is_cuda:
        from pcreg.kernels.triton.padded_copy import copy_padded as by_kernel

        by_kernel(copies)
        return
    for source, target, behind in copies:
        n = source.shape[-1]
        target[..., :n] = source
        if behind is not None:
            target[..., n:] = behind
