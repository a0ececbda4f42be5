"""Patches of clouds: nodes some voxels apart, and the points nearest to each of them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.cells import cloud_of_rows
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.point_batch import PointBatch

MAX_NODES = 600  # of a cloud; attention takes their square in time and memory
MAX_DISTANCES = 1 << 24  # computed at a time
MULTIPLE = 16  # of nodes with padding: what attention on GPUs reads at once


@dataclass(frozen=True)
class Patches:
    """Nodes of B clouds with N points in all, padded to N_max nodes each."""

    points: Tensor  # (B, N_max, 3) float32 metres, in the frame of the cloud's lower corner
    normals: Tensor  # (B, N_max, 3) float32, of unit length, to the side of the viewpoint; or zeros
    present: Tensor  # (B, N_max) bool
    spacing: Tensor  # (B,) float32 metres between the nodes, about
    rows: Tensor  # (M,) int64, rows of the present ones among the given nodes, in the order of `present`
    node: Tensor  # (N,) int64, the node of each point, numbered cloud * N_max + row

    @staticmethod
    def of(batch: PointBatch, nodes: PointBatch, normals: Tensor | None, spacing: float) -> "Patches":
        """Cut clouds into patches around nodes about `spacing` metres apart, with normals (M, 3).

        A cloud with too many nodes keeps some, which are further apart.
        """
        rows, spacings = _few(nodes, spacing)
        normals = torch.zeros_like(nodes.points) if normals is None else normals
        nodes, normals = nodes.select(rows), normals[rows]
        lengths = nodes.lengths.tolist()
        n_max = -(-max(lengths) // MULTIPLE) * MULTIPLE
        sides = zip(batch.points.split(batch.lengths.tolist()), nodes.points.split(lengths), strict=True)
        nearest = torch.cat([_nearest(cloud, some) for cloud, some in sides])
        present = torch.arange(n_max, device=rows.device) < nodes.lengths[:, None]
        padded = nodes.points.new_zeros(2, *present.shape, 3)
        padded[:, present] = torch.stack([nodes.points, normals])
        node = nearest + n_max * cloud_of_rows(batch.lengths)
        return Patches(*padded, present, nodes.points.new_tensor(spacings), rows, node)

    def mean(self, rows: Tensor) -> Tensor:
        """Mean (B, N_max, C) of the rows (N, C) of the points of each node; zeros without points."""
        count = self.present.numel()
        number = torch.bincount(self.node, minlength=count).clamp(min=1)[:, None]
        mean = rows.new_zeros(count, rows.shape[1]).index_add(0, self.node, rows) / number
        return mean.view(*self.present.shape, -1)

    def members(self, limit: int) -> Tensor:
        """Points (B * N_max, L) int64 of each node, at most `limit`, padded with -1."""
        counts = torch.bincount(self.node, minlength=self.present.numel())
        order = torch.argsort(self.node, stable=True)
        first = counts.cumsum(0) - counts
        place = torch.arange(len(order), device=order.device) - first[self.node[order]]
        kept = place < limit
        table = order.new_full((len(counts), min(limit, int(counts.max()))), -1)
        table[self.node[order][kept], place[kept]] = order[kept]
        return table


def _few(nodes: PointBatch, spacing: float) -> tuple[Tensor, list[float]]:
    """Rows (M,) of nodes, no more than MAX_NODES of each cloud, and their spacing in each cloud."""
    lengths = nodes.lengths.tolist()
    rows, spacings = [], []
    for some in torch.arange(len(nodes), device=nodes.points.device).split(lengths):
        cell = spacing
        while len(some) > MAX_NODES:
            cell *= 2**0.5
            points = nodes.points[some]
            origin = torch.zeros(1, 3, dtype=torch.float64, device=points.device)
            some = some[grid_sample(points, torch.tensor([len(some)], device=points.device), cell, origin)]
        rows.append(some)
        spacings.append(cell)
    return torch.cat(rows), spacings


def _nearest(points: Tensor, nodes: Tensor) -> Tensor:
    """Nearest of the nodes (M, 3) to each point (N, 3): (N,) int64."""
    size = max(1, MAX_DISTANCES // max(1, len(nodes)))
    return torch.cat([torch.cdist(some, nodes).argmin(1) for some in points.split(size)])
