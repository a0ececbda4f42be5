"""Motions as kernels read them: a row of numbers for each point of a block."""

import triton
import triton.language as tl


@triton.jit
def row_of(T, present):
    """The four numbers of a row of motions, which begins at T (...); zeros where none is present."""
    return (
        tl.load(T, mask=present, other=0.0),
        tl.load(T + 1, mask=present, other=0.0),
        tl.load(T + 2, mask=present, other=0.0),
        tl.load(T + 3, mask=present, other=0.0),
    )
