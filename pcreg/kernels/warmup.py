"""Kernels of a registration on a GPU, compiled side by side before they are needed.

Functions are run once, with their launches collected instead of made. Which kernels a cloud needs depends on
the sizes of its levels alone: a convolution of few tiles shares them among programs.
"""

from collections.abc import Callable, Sequence
from threading import Thread
from typing import TYPE_CHECKING

import torch

from pcreg.kernels.padded_pyramid import empty_triplets
from pcreg.kernels.point_batch import PointBatch, RowGroups
from pcreg.kernels.pyramid import Pyramid, ends_of_triplets, same_and_down, search_at_once
from pcreg.kernels.pyramid_config import PyramidConfig

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Compilation

# Points of each level of a LiDAR scan and of a fragment of a room, described at three scales.
TYPICAL = ((37_000, 13_000, 5_000, 1_800), (9_000, 2_200, 700, 200))
# Also sizes with which no convolution shares tiles among programs, and sizes with which all do.
ALL_SIZES = (*TYPICAL, (20_000,) * 4, (1,) * 4)


@torch.inference_mode()
def compile_ahead(
    make: Callable[[], torch.nn.Module],
    geometry: PyramidConfig,
    device: torch.device,
    cores: int,
    sizes: Sequence[Sequence[int]],
) -> "Compilation":
    """Begin to compile, in threads, the kernels of a registration by the network that `make` makes.

    Args:
        make: Makes a network that takes a Pyramid; its weights may hold anything.
        geometry: That of the network.
        device: A GPU.
        cores: Threads to compile in, at most.
        sizes: Points of each level of typical clouds.
    """
    starting = Thread(target=_start, args=(device,))  # takes a second, in which Python goes on
    starting.start()
    network = make().to(device).eval()
    starting.join()
    # Imported where they are needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton.launch import Compilation, collected_launches

    with collected_launches() as launches:
        _search_and_estimate(geometry, device)
        for levels in sizes:
            network(_pyramid(levels, geometry, device))
    return Compilation(launches, cores)


def _start(device: torch.device) -> None:
    """Start CUDA and Triton's driver, and have Triton take a checksum of itself, once for all threads."""
    torch.zeros(1, device=device)
    from triton.runtime import driver
    from triton.runtime.cache import triton_key

    driver.active.get_current_target()
    triton_key()


def _search_and_estimate(geometry: PyramidConfig, device: torch.device) -> None:
    """Launch what builds a pyramid, and finds and refines a motion."""
    from pcreg.kernels.triton.points import k_nearest, nearest

    nothing = torch.empty(0, 3, device=device)
    lengths = torch.zeros(2, dtype=torch.int64, device=device)  # a cloud is described at several scales
    search_at_once(PointBatch(nothing, lengths, nothing), geometry)
    points = torch.zeros(2, 3, dtype=torch.float64, device=device)
    motion = torch.eye(4, dtype=torch.float64, device=device)
    nearest.nearest_points(points, points, 1.0)
    k_nearest.kth_distance(points, points, 2, 1.0)
    nearest.inlier_sums(motion[None], points.T, points.T, 1.0)
    nearest.step_sums(points[None], points, points, motion[None], 1.0)


def _pyramid(sizes: Sequence[int], geometry: PyramidConfig, device: torch.device) -> Pyramid:
    """A pyramid with levels of these sizes whose content is anything."""
    levels = []
    for n in sizes:
        points = torch.empty(n, 3, device=device)
        levels.append(PointBatch(points, torch.full((1,), n, device=device), points))
    ends = ends_of_triplets(len(sizes))
    triplets = [empty_triplets(sizes[out], sizes[into], device) for out, into in ends]
    stem = torch.empty(geometry.stem_kernel_size**3, sizes[0], dtype=torch.int32, device=device)
    found = same_and_down(triplets, len(sizes))
    return Pyramid(levels, stem, *found, RowGroups((1,)), [RowGroups((n,)) for n in sizes])
