"""How the search for GPUs numbers kernel cells: kernels/stencil.py and kernels/ppf_cells.py in Triton.

To the last bit, so that both find the same triplets: launch without fusing multiplications and additions.
"""

import triton
import triton.language as tl


@triton.jit
def load_vec3(place, mask):
    """The three numbers at a place."""
    x, y = tl.load(place, mask=mask, other=0.0), tl.load(place + 1, mask=mask, other=0.0)
    return x, y, tl.load(place + 2, mask=mask, other=0.0)


@triton.jit
def sqrt_rn(squared, FLOAT: tl.constexpr):
    """The square root, rounded as IEEE 754 says."""
    return tl.sqrt_rn(squared) if tl.float32 == FLOAT else tl.sqrt(squared)


@triton.jit
def div_rn(part, whole, FLOAT: tl.constexpr):
    """part / whole, rounded as IEEE 754 says."""
    return tl.div_rn(part, whole) if tl.float32 == FLOAT else part / whole


@triton.jit
def step_of(share, kernel_size, FLOAT: tl.constexpr):
    """Number of the step that a share lies in, of `kernel_size` equal ones from 0 to 1, int32."""
    step = tl.floor(share * kernel_size.to(FLOAT)).to(tl.int32)
    return tl.minimum(tl.maximum(step, 0), kernel_size - 1)


@triton.jit
def kernel_cell(displacement, size, kernel_size, FLOAT: tl.constexpr):
    """round(displacement / size), halves to even, clamped to the kernel, counted from its face: int32."""
    cells = div_rn(displacement, size, FLOAT)
    half_width = (kernel_size - 1) // 2
    cells = tl.minimum(tl.maximum(cells, -1.0 - half_width), 1.0 + half_width)
    # Added to so large a number, a small one loses its fraction, as the default rounding rounds.
    LARGE: tl.constexpr = 1.5 * 2**23 if tl.float32 == FLOAT else 1.5 * 2**52
    rounded = ((cells + LARGE) - LARGE).to(tl.int32)
    return tl.minimum(tl.maximum(rounded, -half_width), half_width) + half_width
