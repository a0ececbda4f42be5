"""All that a network launches on a GPU, to be compiled side by side: what is needed first before the rest.

A rehearsal of the network notes its kernels instead of launching them. None depends on a cloud, but for
the way that each convolution takes, so that the network is rehearsed once for each way: first for the ways
that the clouds of most registrations take.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, search_at_once
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig
from pcreg.kernels.range_image import Grid, OcclusionLimits
from pcreg.kernels.row_groups import RowGroups
from pcreg.kernels.tiles import ROWS, Tiles
from pcreg.kernels.triplets import Triplets

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Rehearsal

# Points of each level where a LiDAR scan and a fragment of a room are described at three scales.
TYPICAL = (37_000, 13_000, 5_000, 1_800), (9_000, 2_200, 700, 200)


def start(device: torch.device | str) -> None:
    """Start CUDA, and what Triton needs of it, before anything is launched."""
    torch.zeros(1, device=device)
    from triton.runtime import driver

    driver.active.get_current_target()


def rehearse(
    network: Callable[[Pyramid], object], geometry: PyramidConfig, device: torch.device
) -> "Rehearsal":
    """What a `network` launches on pyramids of this geometry, and a registration beside it.

    That is what builds the pyramids, finds nearest points, looks for a viewpoint, compares surfaces and
    scores motions. The network is rehearsed as it would run now: in inference mode or not, deterministic or
    not.
    """
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton.cell_counts import occupied_and_crowded
    from pcreg.kernels.triton.free_space import look, views_of
    from pcreg.kernels.triton.grid import grid_sample
    from pcreg.kernels.triton.launch import rehearsal
    from pcreg.kernels.triton.neighborhood import EVERY_NTH, MIN_POINTS, kth_distance, sums
    from pcreg.kernels.triton.occlusion import hidden_and_edge_on
    from pcreg.kernels.triton.plane_fit import least_directions
    from pcreg.kernels.triton.points.consensus import inlier_sums
    from pcreg.kernels.triton.points.nearest import nearest_points
    from pcreg.kernels.triton.search.triplets import count_native

    one = torch.zeros(1, 3, dtype=torch.float64, device=device)
    length = torch.ones(1, dtype=torch.int64, device=device)
    with rehearsal() as scale:  # of a cloud, before anything else is known of it
        occupied_and_crowded(one.float().T.contiguous(), [1.0], [(1, 1, 1)], 1)
    with rehearsal() as preparation:
        nothing = torch.empty(0, 3, device=device)
        lengths = torch.zeros(2, dtype=torch.int64, device=device)  # a cloud is described at several scales
        batch = PointBatch(nothing, lengths, nothing)
        search_at_once(batch, geometry)
        grid_sample(one, length, 1.0, one)
        nearest_points(one, one)
        count_native(one, one, length, length, 1.0, 1, 1.0)
        kth_distance(one, one.repeat(EVERY_NTH * MIN_POINTS, 1), 1)
        sums(one, one, 1, 1.0)
        least_directions(one.new_zeros(1, 3, 3))
        hidden_and_edge_on(one, one, one, OcclusionLimits(1, 1.0, 1.0, 1.0))
    with rehearsal() as description:
        for sizes in TYPICAL:
            network(_pyramid(sizes, True, geometry, device))
    with rehearsal() as estimate:
        motion = torch.eye(4, dtype=torch.float64, device=device)
        inlier_sums(motion[None], one.T, one.T, 1.0)
        views = views_of(one, None, one, Grid(2, 2, 1.0))
        for touched in (None, length.bool()):
            look(views, one, motion[None], 1.0, 1.0, touched)
    with rehearsal() as others:
        for pyramid in _pyramids(geometry, device):
            network(pyramid)
        views_of(one, length.int(), one, Grid(2, 2, 1.0))
    return _in_order(scale, preparation, description, estimate, others)


def _in_order(*rehearsals: "Rehearsal") -> "Rehearsal":
    """What was noted, of each rehearsal first what takes longest: begun last, it would be waited for."""
    from pcreg.kernels.triton.variant import source_length

    order: Rehearsal = {}
    for noted in rehearsals:
        for key in sorted(noted, key=lambda key: -source_length(noted[key].kernel)):
            order.setdefault(key, noted[key])
    return order


def _pyramids(geometry: PyramidConfig, device: torch.device) -> Iterator[Pyramid]:
    """One for each way of a convolution, at all levels."""
    from pcreg.kernels.triton.blocks import processors

    for n, occupied in (
        (ROWS * processors(device), True),  # output-stationary, a program for each tile
        (1, True),  # output-stationary, several programs
        (1, False),  # weight-stationary
    ):
        yield _pyramid([n] * geometry.n_levels, occupied, geometry, device)


def _pyramid(sizes: Sequence[int], occupied: bool, geometry: PyramidConfig, device: torch.device) -> Pyramid:
    """A pyramid of which the sizes of the levels are true and the content is not."""
    levels = []
    for n in sizes:
        points = torch.empty(n, 3, device=device)
        levels.append(PointBatch(points, torch.full((1,), n, device=device), points))
    same = [_triplets(n, n, occupied, device) for n in sizes]
    down = [_triplets(n_out, n_in, occupied, device) for n_in, n_out in pairwise(sizes)]
    for triplets in down:  # on the way up few buckets are occupied
        triplets.pair_with(_triplets(triplets.n_in, triplets.n_out, False, device))
    stem = torch.empty(geometry.stem_kernel_size**3, sizes[0], dtype=torch.int32, device=device)
    return Pyramid(levels, stem, same, down, RowGroups((1,)), [RowGroups((n,)) for n in sizes])


def _triplets(n_out: int, n_in: int, occupied: bool, device: torch.device) -> Triplets:
    """So many that every bucket is occupied, or none, arranged for each dataflow."""
    K = KERNEL_SIZE**3
    T = K * n_out if occupied else 0
    rows = torch.empty(T, dtype=torch.int32, device=device)
    triplets = Triplets(rows, rows, torch.full((K + 1,), T, device=device), n_out, n_in)
    source, none = rows.new_empty(K, n_out), rows.new_empty(0)
    triplets.take_tiles(Tiles(source, none.long(), none, rows.new_empty(-(-n_out // ROWS) + 1), 1))
    return triplets
