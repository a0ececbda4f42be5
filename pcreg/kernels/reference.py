"""Definitions of searches, sampling and convolution in plain PyTorch, slow and obvious, for tests."""

import math

import torch
from torch import Tensor

from pcreg.kernels.triplets import Triplets


def radius_search(queries, points, query_lengths, point_lengths, radius) -> set[tuple[int, int]]:
    """{(i, j): |points[j] - queries[i]| <= radius, both of one cloud}, from the full N x P matrix."""
    dx, dy, dz = (points[None, :] - queries[:, None]).unbind(2)  # (N, P)
    near = (dx * dx + dy * dy) + dz * dz <= radius * radius
    query_cloud = torch.arange(len(query_lengths)).repeat_interleave(query_lengths)
    cloud = torch.arange(len(point_lengths)).repeat_interleave(point_lengths)
    same = query_cloud[:, None] == cloud[None, :]
    return {(i, j) for i, j in torch.nonzero(near & same).tolist()}


def grid_sample(points, lengths, size, origins) -> list[int]:
    """The row nearest the centre of each occupied cell of edge `size`, clouds and cells ascending."""
    rows, first = [], 0
    for length, origin in zip(lengths.tolist(), origins, strict=True):
        cells: dict[tuple[int, ...], list[tuple[float, tuple[float, ...], int]]] = {}
        cloud = points[first : first + length].double()
        for row, point in enumerate(cloud):
            position = (point - origin) / size
            cell, inside = position.floor(), position - position.floor()
            entry = ((inside - 0.5).square().sum().item(), tuple(inside.tolist()), first + row)
            cells.setdefault(tuple(cell.long().tolist()), []).append(entry)
        rows += [min(cells[cell])[2] for cell in sorted(cells)]
        first += length
    return rows


def kernel_cell(displacement, size, kernel_size) -> int:
    """The index k of the kernel cell that holds a displacement (3,); outer cells are unbounded."""
    half_width = (kernel_size - 1) // 2
    x, y, z = (displacement / size).round().clamp(-half_width, half_width).long().tolist()
    return ((x + half_width) * kernel_size + (y + half_width)) * kernel_size + (z + half_width)


def ppf_cell(displacement, own, other, radius, kernel_size) -> int:
    """The cell k of a point-pair kernel for a displacement (3,) and both normals (3,)."""
    distance = math.dist(displacement, (0, 0, 0))
    rise, fall = (normal @ displacement / distance if distance else 0 for normal in (own, other))
    shares = distance / radius, (1 + rise) / 2, (1 - fall) / 2
    shell, own, other = (min(int(share * kernel_size), kernel_size - 1) for share in shares)
    return (shell * kernel_size + own) * kernel_size + other


def mvmr(features: Tensor, weight: Tensor, triplets: Triplets) -> Tensor:
    """out[i] = sum over (i, j, k) of W[k] x[j]: matrix-vector multiply and reduce (PointCNN++, Eq. 1).

    features (N_in, C), weight (K, 1, C, M) -> (N_out, M).
    """
    out = features.new_zeros(triplets.n_out, weight.shape[3])
    for k, (i, j) in enumerate(triplets.segments()):
        out.index_add_(0, i.long(), features[j.long()] @ weight[k, 0])
    return out


def vvor(features: Tensor, grad_out: Tensor, triplets: Triplets) -> Tensor:
    """dW[k] = sum over (i, j, k) of x[j] g[i]^T: vector-vector outer product and reduce.

    features (N_in, C), grad_out (N_out, M) -> (K, 1, C, M).
    """
    return torch.stack([(features[j.long()].T @ grad_out[i.long()])[None] for i, j in triplets.segments()])
