"""Angles in float64 within a kernel, which Triton's interpreter knows, too."""

import triton
import triton.language as tl

PI = tl.constexpr(3.141592653589793)
TERMS = tl.constexpr(22)  # of a series whose terms shrink to a sixth: the rest is below the last bit
LARGEST = tl.constexpr(0.4142135623730951)  # that goes into the series: the tangent of an eighth of PI


@triton.jit
def arctan(ratio):
    """Radians, of ratios from -1 to 1."""
    size = tl.abs(ratio)
    steep = size > LARGEST  # arctan t = PI / 4 + arctan((t - 1) / (t + 1))
    t = tl.where(steep, (size - 1) / (size + 1), size)
    square = t * t
    series = tl.zeros_like(t)
    for n in tl.static_range(TERMS):  # 1 - t^2 / 3 + t^4 / 5 - ..., from its end
        series = 1.0 / (2 * (TERMS - n) - 1) - square * series
    angle = tl.where(steep, PI / 4 + t * series, t * series)
    return tl.where(ratio < 0, -angle, angle)


@triton.jit
def arctan2(y, x):
    """Radians, from -PI to PI, of the direction (x, y); zero where both are."""
    across, along = tl.abs(y), tl.abs(x)
    longer = tl.maximum(across, along)
    angle = arctan(tl.minimum(across, along) / tl.where(longer > 0, longer, 1.0))
    angle = tl.where(across > along, PI / 2 - angle, angle)
    angle = tl.where(x < 0, PI - angle, angle)
    return tl.where(y < 0, -angle, angle)
