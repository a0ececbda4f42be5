"""ResUNet in PyTorch for inference on a GPU or with `snap`, and the compilation of its kernels."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pcreg.arrays import Array, Index, to_device
from pcreg.kernels.grid import sample_cloud
from pcreg.kernels.padded_pyramid import empty_triplets
from pcreg.kernels.point_batch import PointBatch, RowGroups
from pcreg.kernels.pyramid import Pyramid, ends_of_triplets, same_and_down, search_at_once
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import fingerprint, uninitialized
from pcreg.models.weights_file import Architecture
from pcreg.runtime import parallel
from pcreg.runtime.device import ONE_THREAD

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Compilation

# Points of each level of a LiDAR scan and of a fragment of a room, described at three scales.
TYPICAL = ((37_000, 13_000, 5_000, 1_800), (9_000, 2_200, 700, 200))
# Adds sizes at which no convolution shares tiles among programs, and sizes at which all do.
ALL_SIZES = (*TYPICAL, (20_000,) * 4, (1,) * 4)


class TorchInference:
    """Network for inference on a device."""

    def __init__(self, network: ResUNet, device: str) -> None:
        self.architecture, self.fingerprint = network.architecture, fingerprint(network)
        self._network, self._device = network.to(device).eval(), device
        # Parts of weights are cached by version, which fused optimizer steps and averages do not raise
        torch.autograd.graph.increment_version(network.parameters())

    def describe(
        self, points: Array, viewpoints: Array | None, voxel: float, scales: Sequence[float] = (1.0,)
    ) -> Array:
        """Describe points like pcreg.models.inference.InferenceResUNet; results repeat bit by bit.

        Returns a tensor on the GPU, or a NumPy array. One pass computes all scales: the batch holds the cloud
        once for each scale s, divided by s. The CPU uses one thread: beside other processes, threads would
        wait for each other at every operator.
        """
        if self._device != "cpu":
            compile_kernels(self.architecture, self._device)
        with ONE_THREAD if self._device == "cpu" else nullcontext(), torch.inference_mode():
            cloud = self._there(points)
            places = torch.zeros_like(cloud) if viewpoints is None else self._there(viewpoints)
            rows = [slice(None), *(sample_cloud(cloud, scale * voxel) for scale in scales[1:])]
            clouds = [cloud[kept] for kept in rows]
            batch = PointBatch.from_clouds(
                [each / scale for each, scale in zip(clouds, scales, strict=True)],
                [places[kept] / scale for kept, scale in zip(rows, scales, strict=True)],
            )
            features = self._network(Pyramid.build(batch, replace(self.architecture, voxel=voxel)))
            first, *others = features.split([len(each) for each in clouds])
            columns = [other[_nearest(cloud, each)] for other, each in zip(others, clouds[1:], strict=True)]
            features = torch.cat([first, *columns], 1) / len(scales) ** 0.5
            return to_device(features, self._device)

    def _there(self, rows: Array) -> Tensor:
        # For a GPU the host rows have been read once this returns, but the device may still be busy.
        return torch.as_tensor(rows).to(self._device, non_blocking=True)


def _nearest(points: Tensor, downsampled: Tensor) -> Tensor:
    """Rows (N,) int64 of the downsampled points (M, 3) that are nearest to points (N, 3)."""
    if len(points) == 0:
        return torch.empty(0, dtype=torch.int64, device=points.device)
    return Index(downsampled).query(points)[1]


@cache
@torch.inference_mode()
def compile_kernels(
    architecture: Architecture, device: str, sizes: Sequence[Sequence[int]] = TYPICAL
) -> "Compilation":
    """Start to compile, in threads, the GPU kernels of a registration by such networks; runs once.

    An uninitialized network is run, and its launches are collected instead of made. Which kernels a cloud
    needs depends on the `sizes` of its levels alone: a convolution of few tiles shares each tile among
    programs.
    """
    starting = Thread(target=_start, args=(device,))  # takes a second, while this thread goes on
    starting.start()
    network = uninitialized(architecture).to(device).eval()
    starting.join()
    # Imported where they are needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton.launch import Compilation, collected_launches

    with collected_launches() as launches:
        _search_and_estimate(architecture, device)
        for levels in sizes:
            network(_pyramid(levels, architecture, device))
    return Compilation(launches, parallel.cores())


def _start(device: str) -> None:
    """Initialize CUDA, Triton's driver and Triton's checksum of itself, once for all threads."""
    torch.zeros(1, device=device)
    from triton.runtime import driver
    from triton.runtime.cache import triton_key

    driver.active.get_current_target()
    triton_key()


def _search_and_estimate(architecture: Architecture, device: str) -> None:
    """Launch the kernels that build a pyramid, and those of RANSAC and ICP."""
    from pcreg.kernels.triton.points import k_nearest, nearest

    nothing = torch.empty(0, 3, device=device)
    lengths = torch.zeros(2, dtype=torch.int64, device=device)  # a cloud is described at several scales
    search_at_once(PointBatch(nothing, lengths, nothing), architecture)
    points = torch.zeros(2, 3, dtype=torch.float64, device=device)
    motion = torch.eye(4, dtype=torch.float64, device=device)
    nearest.nearest_points(points, points, 1.0)
    k_nearest.kth_distance(points, points, 2, 1.0)
    nearest.inlier_sums(motion[None], points.T, points.T, 1.0)
    nearest.step_sums(points[None], points[None], points, points, motion[None], 1.0, 1.0, 1.0)


def _pyramid(sizes: Sequence[int], architecture: Architecture, device: str) -> Pyramid:
    """Make a pyramid with levels of these sizes and arbitrary content."""
    levels = []
    for n in sizes:
        points = torch.empty(n, 3, device=device)
        levels.append(PointBatch(points, torch.full((1,), n, device=device), points))
    ends = ends_of_triplets(len(sizes))
    triplets = [empty_triplets(sizes[out], sizes[into], device) for out, into in ends]
    stem = torch.empty(architecture.stem_kernel_size**3, sizes[0], dtype=torch.int32, device=device)
    found = same_and_down(triplets, len(sizes))
    return Pyramid(levels, stem, *found, RowGroups((1,)), [RowGroups((n,)) for n in sizes])
