"""ResUNet in PyTorch for inference on arrays: on a GPU, and with `snap`."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pcreg.arrays import Array, Index, to_device
from pcreg.kernels.grid import sample_cloud
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.warmup import TYPICAL, compile_ahead
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import fingerprint, uninitialized
from pcreg.models.weights_file import Architecture
from pcreg.runtime import parallel
from pcreg.runtime.device import ONE_THREAD

if TYPE_CHECKING:
    from pcreg.kernels.triton.launch import Compilation


@cache
def compile_kernels(
    architecture: Architecture, device: str, sizes: Sequence[Sequence[int]] = TYPICAL
) -> "Compilation":
    """Begin to compile the kernels of such networks on a GPU, once; the weights need not have been loaded.

    `sizes` are those of `compile_ahead`.
    """
    make, cores = partial(uninitialized, architecture), parallel.cores()
    return compile_ahead(make, architecture, torch.device(device), cores, sizes)


class TorchInference:
    """Network for inference on a device."""

    def __init__(self, network: ResUNet, device: str) -> None:
        self.architecture, self.fingerprint = network.architecture, fingerprint(network)
        self._network, self._device = network.to(device).eval(), device
        # Kernels keep parts of weights by version, which fused steps and averages on a GPU do not raise
        torch.autograd.graph.increment_version(network.parameters())

    def describe(
        self, points: Array, viewpoints: Array | None, voxel: float, scales: Sequence[float] = (1.0,)
    ) -> Array:
        """Describe points as pcreg.models.inference.InferenceResUNet does; repeats to the last bit.

        On a GPU the result is a tensor there, on the CPU an array.

        One pass computes all scales: at a scale s the cloud is one more of the batch, in units of s. On the
        CPU one thread computes: beside other processes threads would wait for each other at every operator.
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
            features = self._network.describe(batch, voxel)
            first, *others = features.split([len(each) for each in clouds])
            columns = [other[_nearest(cloud, each)] for other, each in zip(others, clouds[1:], strict=True)]
            features = torch.cat([first, *columns], 1) / len(scales) ** 0.5
            return to_device(features, self._device)

    def _there(self, rows: Array) -> Tensor:
        # The rows have been read when this returns; the device is not waited for.
        return torch.as_tensor(rows).to(self._device, non_blocking=True)


def _nearest(points: Tensor, downsampled: Tensor) -> Tensor:
    """Nearest of the downsampled points (M, 3) to each of points (N, 3): (N,) int64."""
    if len(points) == 0:
        return torch.empty(0, dtype=torch.int64, device=points.device)
    return Index(downsampled).query(points)[1]
