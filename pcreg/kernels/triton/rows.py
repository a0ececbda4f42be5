"""Rows of numbers as kernels read them: three columns, one value of each for every row of a block."""

import triton
import triton.language as tl


@triton.jit
def three_of(rows, n, width, column, mask):
    """Three values from a column on, of rows n (...) of so many columns; zeros where they are masked."""
    at = rows + width * n + column
    return (
        tl.load(at, mask=mask, other=0.0),
        tl.load(at + 1, mask=mask, other=0.0),
        tl.load(at + 2, mask=mask, other=0.0),
    )
