"""Compiling beforehand, side by side, all that a network launches on a GPU.

A rehearsal of the network notes its kernels instead of launching them. None depends on a cloud, but for
the way that each convolution takes, so that the network is rehearsed once for each way.
"""

from collections.abc import Callable, Iterator

import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.point_to_plane import Limits
from pcreg.kernels.pyramid import Pyramid, search_at_once
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig
from pcreg.kernels.row_groups import RowGroups
from pcreg.kernels.tiles import ROWS, Tiles
from pcreg.kernels.triplets import Triplets


def warm_up(
    network: Callable[[Pyramid], object], geometry: PyramidConfig, device: torch.device, cores: int
) -> int:
    """Compile what a `network` launches on pyramids of this geometry: how many kernels were not there yet.

    With them what builds the pyramids, finds nearest points, compares surfaces and scores motions. The
    network is rehearsed as it would run now: in inference mode or not, deterministic or not. Takes so many
    `cores`.
    """
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton.agreement import align
    from pcreg.kernels.triton.cell_counts import occupied_and_crowded
    from pcreg.kernels.triton.consensus import fit_samples, refit
    from pcreg.kernels.triton.grid import grid_sample
    from pcreg.kernels.triton.launch import compile_noted, rehearsal
    from pcreg.kernels.triton.nearest import nearest_points
    from pcreg.kernels.triton.neighborhood import EVERY_NTH, MIN_POINTS, kth_distance, sums
    from pcreg.kernels.triton.plane_fit import least_directions
    from pcreg.kernels.triton.point_to_plane import iterate
    from pcreg.kernels.triton.search.triplets import count_native

    with rehearsal() as noted:
        for pyramid in _pyramids(geometry, device):
            network(pyramid)
        nothing = torch.empty(0, 3, device=device)
        batch = PointBatch(nothing, torch.zeros(1, dtype=torch.int64, device=device), nothing)
        search_at_once(batch, geometry)
        one = torch.zeros(1, 3, dtype=torch.float64, device=device)
        length = torch.ones(1, dtype=torch.int64, device=device)
        grid_sample(one, length, 1.0, one)
        occupied_and_crowded(one.float().T.contiguous(), 1.0, (1, 1, 1), 1)
        nearest_points(one, one)
        count_native(one, one, length, length, 1.0, 1, 1.0)
        kth_distance(one, one.repeat(EVERY_NTH * MIN_POINTS, 1), 1)
        sums(one, one, 1, 1.0)
        least_directions(one.new_zeros(1, 3, 3))
        motion = torch.eye(4, dtype=torch.float64, device=device)
        iterate(one, one, one, one.new_zeros(18), Limits(1.0, 1.0, 1.0, 1.0), 1)
        fit_samples(one.T, one.T, length[None].expand(1, 3), 1.0)
        refit(motion[None], one.T, one.T, 1.0, 1)
        align(one, one, one.float(), one.float(), motion, 1.0, 0.0, 1, 1)
    return compile_noted(noted, cores)


def _pyramids(geometry: PyramidConfig, device: torch.device) -> Iterator[Pyramid]:
    """Pyramids of which the sizes are true and the content is not, one for each way of a convolution."""
    from pcreg.kernels.triton.blocks import processors

    K = KERNEL_SIZE**3
    for n, occupied in (
        (ROWS * processors(device), True),  # output-stationary, a program for each tile
        (1, True),  # output-stationary, several programs
        (1, False),  # weight-stationary
    ):
        triplets = _triplets(n, K * n if occupied else 0, K, device)
        triplets.pair_with(_triplets(n, 0, K, device))  # on the way up few buckets are occupied
        points = torch.empty(n, 3, device=device)
        level = PointBatch(points, torch.full((1,), n, device=device), points)
        stem = torch.empty(geometry.stem_kernel_size**3, n, dtype=torch.int32, device=device)
        levels = geometry.n_levels
        between = levels - 1
        row_groups = [RowGroups((n,))] * levels
        yield Pyramid(
            [level] * levels, stem, [triplets] * levels, [triplets] * between, RowGroups((1,)), row_groups
        )


def _triplets(n: int, T: int, K: int, device: torch.device) -> Triplets:
    """T triplets of n points with themselves, arranged for each dataflow."""
    rows = torch.empty(T, dtype=torch.int32, device=device)
    triplets = Triplets(rows, rows, torch.full((K + 1,), T, device=device), n, n)
    source, none = rows.new_empty(K, n), rows.new_empty(0)
    triplets.take_tiles(Tiles(source, none.long(), none, rows.new_empty(-(-n // ROWS) + 1), 1))
    return triplets
