"""Normal of the plane through some points, from sums over them: for arrays and for tensors alike.

kernels/triton/plane_fit.py is its kernel for networks.
"""

from typing import Any

MIN_NEIGHBORS = 4  # points, its own among them, from which a normal is taken
MIN_VARIANCE_RATIO = 1e-5  # of a neighbourhood's variance: less in its second direction is rounding


def normals_of(xp: Any, counts: Any, sums: Any, towards: Any) -> Any:
    """Unit normals (N, 3) to the side of `towards` (N, 3); zeros for fewer than 4 points, or all on a line.

    `sums` (N, 9) are those of `counts` (N,) offsets x, y, z and of their products xx, xy, xz, yy, yz, zz, in
    float64 as `towards` is. `xp` is numpy or torch, whose arrays all are.
    """
    x, y, z, *second = (sums / counts.clip(min=1)[:, None]).T
    first = x * x, x * y, x * z, y * y, y * z, z * z
    normals = least_direction(xp, *(a - b for a, b in zip(second, first, strict=True)))
    normals = xp.where(((normals * towards).sum(1) < 0)[:, None], -normals, normals)
    return normals * (counts >= MIN_NEIGHBORS)[:, None]


def least_direction(xp: Any, xx: Any, xy: Any, xz: Any, yy: Any, yz: Any, zz: Any) -> Any:
    """Unit eigenvector (N, 3) of the least eigenvalue of N symmetric matrices, float64 (N,) each.

    By the trigonometric formula (Smith, 1961); zeros where two eigenvalues are as small.
    """
    trace = (xx + yy + zz).clip(min=xp.finfo(xx.dtype).tiny)
    xx, xy, xz, yy, yz, zz = (entry / trace for entry in (xx, xy, xz, yy, yz, zz))
    mean = (xx + yy + zz) / 3
    a, b, c = xx - mean, yy - mean, zz - mean
    p = xp.sqrt((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6)
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = (determinant / (2 * p**3).clip(min=1e-30)).clip(-1, 1)
    least = mean + 2 * p * xp.cos((xp.arccos(cosine) + 2 * xp.pi) / 3)
    # Each row of what is left is orthogonal to the eigenvector: so is the longest product of two.
    a, b, c = xx - least, yy - least, zz - least
    rows = [xp.stack(row, 1) for row in ((a, xy, xz), (xy, b, yz), (xz, yz, c))]
    products = xp.stack([xp.linalg.cross(rows[n], rows[n - 1]) for n in range(3)])
    first, second, third = lengths = xp.sqrt((products * products).sum(2))
    is_first = (first >= second) & (first >= third)
    direction = xp.where((second >= third)[:, None], products[1], products[2])
    direction = xp.where(is_first[:, None], products[0], direction)
    longest = xp.amax(lengths, 0)
    clear = longest > MIN_VARIANCE_RATIO
    return direction / xp.where(clear, longest, 1)[:, None] * clear[:, None]
