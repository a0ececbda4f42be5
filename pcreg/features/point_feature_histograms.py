"""Fast point feature histograms (Rusu et al., ICRA 2009) in PyTorch, for GPUs.

Angles, bins and weights are those of Open3D, which computes them on the CPU.
"""

import torch
from torch import Tensor

from pcreg.arrays import Index

BINS = 11  # of each of three angles
BLOCK_PAIRS = 1 << 20  # of a point and a neighbour, compared together in some 500 MB


def histograms(points: Tensor, normals: Tensor, neighbors: int, radius: float) -> Tensor:
    """FPFH (N, 33) float32 of points (N, 3) with normals (N, 3), both float64, metres.

    Of each point's neighbours within `radius` the nearest count, up to `neighbors` with the point itself.
    """
    i, j, squared = _pairs(points, neighbors, radius)
    counts = torch.bincount(i, minlength=len(points))
    simple = _simple(points, normals, i, j, squared, counts)
    sums = torch.zeros_like(simple)
    rows = max(1, BLOCK_PAIRS // max(neighbors, 1))
    ends = counts.cumsum(0).tolist()
    for first in range(0, len(points), rows):
        last = min(first + rows, len(points))
        pairs = slice(ends[first - 1] if first else 0, ends[last - 1])
        weighted, lengths = simple[j[pairs]] / squared[pairs, None], counts[first:last]
        sums[first:last] = torch.segment_reduce(weighted, "sum", lengths=lengths, axis=0, unsafe=True)
    sums = sums.view(-1, 3, BINS)
    total = sums.sum(2, keepdim=True)
    return (100 * sums / total.where(total > 0, 1) + simple.view(-1, 3, BINS)).flatten(1).float()


def _pairs(points: Tensor, neighbors: int, radius: float) -> tuple[Tensor, Tensor, Tensor]:
    """Rows i and j (P,) of points and their neighbours, by i, and squared distances (P,), all above zero."""
    distance, rows = Index(points).query(points, neighbors, radius)
    i, column = ((distance > 0) & (distance < radius)).nonzero(as_tuple=True)
    j = rows[i, column]
    return i, j, (points[j] - points[i]).square().sum(1)


def _simple(points: Tensor, normals: Tensor, i: Tensor, j: Tensor, squared: Tensor, counts: Tensor) -> Tensor:
    """Simplified histograms (N, 33) float64: per cent of the pairs of each point in each bin."""
    found = torch.zeros(len(points) * 3 * BINS, dtype=torch.int64, device=points.device)
    for block in torch.arange(len(i), device=i.device).split(BLOCK_PAIRS):
        one, other = i[block], j[block]
        direction = (points[other] - points[one]) / squared[block, None].sqrt()
        angles = _angles(direction, normals[one], normals[other])
        bins = (BINS * angles).long().clamp(0, BINS - 1)  # (P, 3)
        place = (3 * one[:, None] + torch.arange(3, device=i.device)) * BINS + bins
        found += torch.bincount(place.flatten(), minlength=len(found))
    return 100 * found.view(-1, 3 * BINS).double() / counts.clamp(min=1)[:, None]


def _angles(direction: Tensor, n_one: Tensor, n_other: Tensor) -> Tensor:
    """Angles (P, 3), 0..1, of pairs with unit directions (P, 3) and normals (P, 3) of both points."""
    along_one, along_other = (n_one * direction).sum(1), (n_other * direction).sum(1)
    swap = (along_one.abs() < along_other.abs())[:, None]
    u, other = torch.where(swap, n_other, n_one), torch.where(swap, n_one, n_other)
    direction = torch.where(swap, -direction, direction)
    v = torch.linalg.cross(direction, u)
    length = v.norm(dim=1, keepdim=True)
    v = v / length.where(length > 0, 1)
    w = torch.linalg.cross(u, v)
    theta = torch.atan2((w * other).sum(1), (u * other).sum(1))
    phi = torch.where(swap[:, 0], -along_other, along_one)
    alpha = (v * other).sum(1)
    found = torch.stack([theta / (2 * torch.pi) + 0.5, (alpha + 1) / 2, (phi + 1) / 2], 1)
    return torch.where(length > 0, found, 0.5)
