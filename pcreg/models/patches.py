"""Clouds cut into patches: nodes some voxels apart, and the points nearest to each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pcreg.kernels.cells import cloud_of_rows
from pcreg.kernels.grid import grid_sample
from pcreg.kernels.normals import least_direction
from pcreg.kernels.point_batch import PointBatch

MAX_NODES = 1000  # of a cloud; attention takes their square in time and memory
MAX_DISTANCES = 1 << 24  # computed at a time
MULTIPLE = 16  # of nodes with padding: what attention on GPUs reads at once


@dataclass(frozen=True)
class Patches:
    """The nodes of B clouds with N points in all; what is absent is padding, to N_max nodes each."""

    points: Tensor  # (B, N_max, 3) float32 metres, in the frame of the cloud's lower corner
    normals: Tensor  # (B, N_max, 3) float32, of unit length, to the side of the viewpoint; or zeros
    present: Tensor  # (B, N_max) bool
    spacing: Tensor  # (B,) float32 metres, edge of the cells with one node each
    node: Tensor  # (N,) int64, of each point its node, numbered cloud * N_max + row

    @staticmethod
    def of(batch: PointBatch, spacing: float) -> "Patches":
        """Of clouds with viewpoints, with one node per cell of `spacing` metres.

        Cells are larger where a cloud would have too many nodes.
        """
        picked, spacings = _nodes(batch, spacing)
        n_max = -(-max(map(len, picked)) // MULTIPLE) * MULTIPLE
        shape = len(picked), n_max
        clouds = batch.points.split(batch.lengths.tolist())
        nodes = torch.cat([_nearest(cloud, rows) for cloud, rows in zip(clouds, picked, strict=True)])
        node = nodes + n_max * cloud_of_rows(batch.lengths)
        points = batch.points.new_zeros(*shape, 3)
        present = torch.zeros(shape, dtype=torch.bool, device=points.device)
        for number, rows in enumerate(picked):
            points[number, : len(rows)] = rows
            present[number, : len(rows)] = True
        patches = Patches(points, torch.zeros_like(points), present, points.new_tensor(spacings), node)
        normals = _normals(batch.points, node, len(clouds) * n_max).view(*shape, 3)
        towards = patches.mean(batch.viewpoints - batch.points)
        normals = torch.where((normals * towards).sum(2, keepdim=True) < 0, -normals, normals)
        return replace(patches, normals=normals)

    @staticmethod
    def join(some: Sequence["Patches"]) -> "Patches":
        """The clouds of several, one after another."""
        n_max = max(each.present.shape[1] for each in some)
        node, first = [], 0
        for each in some:
            cloud, row = each.node // each.present.shape[1], each.node % each.present.shape[1]
            node.append((first + cloud) * n_max + row)
            first += len(each.present)
        fields = {
            name: torch.cat([_widened(getattr(each, name), n_max) for each in some])
            for name in ("points", "normals", "present")
        }
        return Patches(**fields, spacing=torch.cat([each.spacing for each in some]), node=torch.cat(node))

    def mean(self, rows: Tensor) -> Tensor:
        """Of each node the mean (B, N_max, C) of the rows (N, C) of its points; zeros without points."""
        count = self.present.numel()
        number = torch.bincount(self.node, minlength=count).clamp(min=1)[:, None]
        mean = rows.new_zeros(count, rows.shape[1]).index_add(0, self.node, rows) / number
        return mean.view(*self.present.shape, -1)

    def members(self, limit: int) -> Tensor:
        """The points (B * N_max, L) int64 of each node, at most `limit`, -1 where there are fewer."""
        counts = torch.bincount(self.node, minlength=self.present.numel())
        order = torch.argsort(self.node, stable=True)
        first = counts.cumsum(0) - counts
        place = torch.arange(len(order), device=order.device) - first[self.node[order]]
        kept = place < limit
        table = order.new_full((len(counts), min(limit, int(counts.max()))), -1)
        table[self.node[order][kept], place[kept]] = order[kept]
        return table


def _nodes(batch: PointBatch, spacing: float) -> tuple[list[Tensor], list[float]]:
    """Of each cloud points (M, 3), one per cell, and the edge of the cells, `spacing` metres or more."""
    origins = torch.zeros(len(batch.lengths), 3, dtype=torch.float64, device=batch.points.device)
    nodes = batch.select(grid_sample(batch.points, batch.lengths, spacing, origins))
    lengths = nodes.lengths.tolist()
    if max(lengths) <= MAX_NODES:
        return list(nodes.points.split(lengths)), [spacing] * len(lengths)
    if len(lengths) == 1:
        return _nodes(batch, spacing * 2**0.5)
    clouds = batch.points.split(batch.lengths.tolist())
    single = [_nodes(PointBatch(cloud, batch.lengths[n : n + 1]), spacing) for n, cloud in enumerate(clouds)]
    return [nodes for (nodes,), _ in single], [edge for _, (edge,) in single]


def _nearest(points: Tensor, nodes: Tensor) -> Tensor:
    """Of each point (N, 3) the nearest of the nodes (M, 3): (N,) int64."""
    size = max(1, MAX_DISTANCES // len(nodes))
    return torch.cat([torch.cdist(some, nodes).argmin(1) for some in points.split(size)])


def _normals(points: Tensor, node: Tensor, count: int) -> Tensor:
    """Of `count` nodes the normals (count, 3) of the planes through their points; zeros without a plane."""
    terms = torch.cat([points, points.new_ones(len(points), 1)], 1).double()
    sums = terms.new_zeros(count, 4).index_add_(0, node, terms)
    centred = points.double() - (sums[:, :3] / sums[:, 3:].clamp(min=1))[node]
    x, y, z = centred.unbind(1)
    products = torch.stack([x * x, x * y, x * z, y * y, y * z, z * z], 1)
    return least_direction(*products.new_zeros(count, 6).index_add_(0, node, products).unbind(1)).float()


def _widened(rows: Tensor, n_max: int) -> Tensor:
    """(B, N, ...) padded with zeros to (B, n_max, ...)."""
    padding = rows.new_zeros(len(rows), n_max - rows.shape[1], *rows.shape[2:])
    return torch.cat([rows, padding], 1)
