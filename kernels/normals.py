"""Surface normals of batched clouds, by the covariance of what lies within a radius."""

import torch
from torch import Tensor

from pcreg.kernels.neighbors import in_parts, radius_search

MIN_NEIGHBORS = 4  # points, its own among them, from which a normal is taken
MIN_VARIANCE_RATIO = 1e-5  # of a neighbourhood's variance: less in its second direction is rounding


def surface_normals(points: Tensor, lengths: Tensor, viewpoints: Tensor, radius: float) -> Tensor:
    """Unit normals (N, 3) of clouds with points (N, 3), lengths (B,): of the planes through what is near.

    They point to the side of the `viewpoints` (N, 3) of the points. Zeros where fewer than 4 points lie
    within `radius` metres, or all on a line. Takes about 90 bytes for each of the pairs of points within the
    radius, on the CPU for those of some 16,000 points at a time.
    """
    whole = [(slice(0, len(points)), lengths)]
    parts = (
        _sums(points, lengths, *part, radius) for part in (whole if points.is_cuda else in_parts(lengths))
    )
    counts, sums = (torch.cat(each) for each in zip(*parts, strict=True))
    x, y, z, *second = (sums.double() / counts.clamp(min=1)[:, None]).unbind(1)
    first = x * x, x * y, x * z, y * y, y * z, z * z
    normals = least_direction(*(a - b for a, b in zip(second, first, strict=True)))
    towards = (viewpoints - points).to(normals)
    normals = torch.where(((normals * towards).sum(1) < 0)[:, None], -normals, normals)
    return (normals * (counts >= MIN_NEIGHBORS)[:, None]).to(points.dtype)


def _sums(
    points: Tensor, lengths: Tensor, rows: slice, row_lengths: Tensor, radius: float
) -> tuple[Tensor, Tensor]:
    """Of the given rows the number (R,) of points near each, and the sums (R, 9) over them.

    They are sums of the offsets x, y, z and of their products xx, xy, xz, yy, yz, zz.
    """
    some = points[rows]
    i, j = radius_search(some, points, row_lengths, lengths, radius)
    counts = torch.bincount(i, minlength=len(some))
    x, y, z = (points[j] - some[i]).unbind(1)
    terms = torch.stack([x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], 1)
    return counts, torch.segment_reduce(terms, "sum", lengths=counts, axis=0, unsafe=True)


def least_direction(xx, xy, xz, yy, yz, zz) -> Tensor:
    """The unit eigenvector (N, 3) of the least eigenvalue of N symmetric matrices, float64 (N,) each.

    By the trigonometric formula (Smith, 1961); zeros where two eigenvalues are as small.
    """
    trace = (xx + yy + zz).clamp(min=torch.finfo(xx.dtype).tiny)
    xx, xy, xz, yy, yz, zz = (entry / trace for entry in (xx, xy, xz, yy, yz, zz))
    mean = (xx + yy + zz) / 3
    a, b, c = xx - mean, yy - mean, zz - mean
    p = ((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6).sqrt()
    determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    cosine = (determinant / (2 * p**3).clamp(min=1e-30)).clamp(-1, 1)
    least = mean + 2 * p * torch.cos((torch.acos(cosine) + 2 * torch.pi) / 3)
    # Each row of what is left is orthogonal to the eigenvector: so is the longest product of two.
    a, b, c = xx - least, yy - least, zz - least
    rows = [torch.stack(row, 1) for row in ((a, xy, xz), (xy, b, yz), (xz, yz, c))]
    products = torch.stack([torch.linalg.cross(rows[n], rows[n - 1]) for n in range(3)])
    lengths, longest = products.norm(dim=2).max(0)
    direction = products[longest, torch.arange(len(longest), device=longest.device)]
    clear = lengths > MIN_VARIANCE_RATIO
    return direction / torch.where(clear, lengths, 1)[:, None] * clear[:, None]
