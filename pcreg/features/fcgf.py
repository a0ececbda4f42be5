"""The learned descriptor: fully convolutional geometric features of a trained network."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pcreg.features.base import Description
from pcreg.features.pretrained import weights_for
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.kernels.point_batch import PointBatch
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import fingerprint, load_weights
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

log = logging.getLogger(__name__)

# Peak of pyramid and network in float32, with a first layer of 7^3 cells; measured: 7 kB
BYTES_PER_POINT = 8192
SCALES = (1.0, 1.4, 2.0)  # of the voxel size; see docs/benchmarks.md


class FCGF:
    """Fully convolutional geometric features (Choy, Park and Koltun, ICCV 2019) of a trained network."""

    name = "fcgf"

    def __init__(self, network: ResUNet, device: str = "cpu", scales: Sequence[float] = SCALES) -> None:
        """Descriptors at several `scales` side by side: at the voxel size, and at multiples of it.

        The network knows no unit of length: with twice the voxel size its receptive field has twice the
        width.
        """
        if not _usable(scales):
            raise InputError(f"scales={scales}: give 1 first and then larger ones, such as [1, 1.4, 2]")
        self.device, self.scales = choose_device(device), tuple(scales)
        self.network = network.to(self.device).eval()
        self.voxel = self.trained_voxel = network.architecture.voxel
        several = ", ".join(f"{scale:g}" for scale in self.scales)
        self.fingerprint = fingerprint(network) + (f", scales {several}" if len(self.scales) > 1 else "")

    @staticmethod
    def load(
        weights: str | Path | None = None,
        device: str = "cpu",
        voxel: float | None = None,
        scales: Sequence[float] = SCALES,
    ) -> "FCGF":
        """The descriptor of a .safetensors file written by `pcreg train`, on points `voxel` metres apart.

        Without a file, of the shipped weights for this voxel size; without a voxel size, at that of the
        training. Raises InputError if the file cannot be used, and without both.
        """
        if weights is None:
            if voxel is None:
                raise InputError("fcgf needs weights, or a voxel size to choose the shipped ones by")
            weights = weights_for(voxel)
        learned = FCGF(load_weights(weights), device, scales)
        return learned if voxel is None else learned.at(voxel)

    def at(self, voxel: float) -> "FCGF":
        """The same network on points `voxel` metres apart; InputError if that is not positive."""
        if not voxel > 0:
            raise InputError(f"voxel={voxel}: give metres, more than zero")
        other = copy(self)
        other.voxel = voxel
        return other

    def without_network(self) -> "FCGF":
        """All but the network, for a process that describes nothing."""
        other = copy(self)
        del other.network
        return other

    @property
    def label(self) -> str:
        trained = self.trained_voxel
        elsewhere = "" if trained == self.voxel else f", trained at {trained:g} m"
        return f"FCGF (learned, weights {self.fingerprint}{elsewhere})"

    def describe(self, points: NDArray[np.float64]) -> Description:
        return self.describe_all([points])[0]

    def describe_all(
        self, clouds: Sequence[NDArray[np.float64]], budget: int = 4 * 2**30
    ) -> list[Description]:
        """Describe clouds (N, 3) in as few passes as fit into about `budget` bytes of the device's memory.

        What a cloud is batched with does not change its description but for the last bits, and with
        torch.use_deterministic_algorithms not even those. A cloud too large for the budget is a batch of its
        own. On the CPU it takes one core: threads would wait for one another at every one of many small
        operators, and beside other processes wait a hundred times as long as they compute.
        """
        kept = [points[voxel_downsample(points, self.voxel)] for points in clouds]
        described: list[Description] = []
        with ONE_THREAD if self.device == "cpu" else nullcontext(), torch.inference_mode():
            for batch in _batches(kept, max(budget // BYTES_PER_POINT, 1)):
                columns = zip(*(self._at_scale(batch, scale) for scale in self.scales), strict=True)
                features = [np.concatenate(each, 1) / len(self.scales) ** 0.5 for each in columns]
                described += map(Description, batch, features)
        return described

    def _at_scale(self, clouds: list[NDArray[np.float64]], scale: float) -> list[NDArray[np.float32]]:
        """Unit descriptors (N, C) of the points of each cloud, at `scale` times the voxel size.

        A point that is not in the downsampled cloud has the descriptor of the nearest one that is.
        """
        voxel = scale * self.voxel
        log.info("describe: %d points, in cells of %g m", sum(map(len, clouds)), voxel)
        downsampled = clouds if scale == 1 else [points[voxel_downsample(points, voxel)] for points in clouds]
        features = self.network.describe(PointBatch.from_clouds(downsampled).to(self.device), voxel)
        split = np.split(
            features.float().cpu().numpy(), np.cumsum([len(points) for points in downsampled])[:-1]
        )
        if scale == 1:
            return split
        return [
            each[cKDTree(fewer).query(points)[1]] if len(points) else each
            for each, fewer, points in zip(split, downsampled, clouds, strict=True)
        ]


def _usable(scales: Sequence[float]) -> bool:
    """Whether these are 1 and then larger finite numbers."""
    if not isinstance(scales, Sequence) or not all(isinstance(scale, int | float) for scale in scales):
        return False
    return len(scales) > 0 and scales[0] == 1 and all(1 < scale < np.inf for scale in scales[1:])


def _batches(clouds: list[NDArray[np.float64]], max_points: int) -> Iterator[list[NDArray[np.float64]]]:
    """The clouds in their order, in lists of no more points altogether unless one cloud has them alone."""
    batch: list[NDArray[np.float64]] = []
    for points in clouds:
        if batch and sum(map(len, batch)) + len(points) > max_points:
            yield batch
            batch = []
        batch.append(points)
    if batch:
        yield batch
