"""The learned descriptor: fully convolutional geometric features of a trained network."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from pcreg.features.base import Description, Nodes
from pcreg.features.pretrained import weights_for
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid
from pcreg.models.resunet import NODE_LEVEL, ResUNet
from pcreg.models.weights import fingerprint, load_weights
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

log = logging.getLogger(__name__)

SCALES = (1.0, 1.4, 2.0)  # of the voxel size; see docs/notes/2026-11-22-descriptors.md


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
        # Distances and heights over tangent planes are the same in a mirror
        self.reflection_invariant = network.architecture.kernel == "ppf"
        several = ", ".join(f"{scale:g}" for scale in self.scales)
        self.fingerprint = fingerprint(network) + (f", scales {several}" if len(self.scales) > 1 else "")

    @staticmethod
    def load(
        weights: str | Path | None = None,
        device: str = "cpu",
        voxel: float | None = None,
        scales: Sequence[float] = SCALES,
    ) -> "FCGF":
        """The descriptor of a .safetensors file written by `pcreg train`, at a `voxel` size in metres.

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
        """The same network at another voxel size in metres; InputError if that is not positive."""
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

    def describe(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None = None
    ) -> Description:
        """Describe the cloud (N, 3), seen from the origin or from the `viewpoints` (N, 3) of its points.

        On a GPU it repeats to the last bit with torch.use_deterministic_algorithms alone.
        On the CPU it takes one core: threads would wait for one another at every one of many small operators,
        and beside other processes wait a hundred times as long as they compute.
        """
        rows = voxel_downsample(points, self.voxel)
        kept, seen_from = points[rows], None if viewpoints is None else viewpoints[rows]
        with ONE_THREAD if self.device == "cpu" else nullcontext(), torch.inference_mode():
            first, nodes = self._with_nodes(kept, seen_from)
            others = [self._at_scale(kept, seen_from, scale) for scale in self.scales[1:]]
        features = np.concatenate([first, *others], 1) / len(self.scales) ** 0.5
        return Description(kept, features, nodes=nodes)

    def _with_nodes(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float32], Nodes | None]:
        """Unit descriptors (N, C) of points (N, 3) at the voxel size, and the nodes of a matcher."""
        pyramid = self._pyramid(points, viewpoints, self.voxel)
        features, node_features = self.network.features(pyramid)
        if not self.network.matcher:
            return _array(features), None
        local = pyramid.levels[NODE_LEVEL].points
        normals = pyramid.normals[NODE_LEVEL] if pyramid.normals else torch.zeros_like(local)
        node_points = _array(local).astype(np.float64) + (points.min(0) if len(points) else 0)
        return _array(features), Nodes(node_points, _array(normals), _array(node_features))

    def _at_scale(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, scale: float
    ) -> NDArray[np.float32]:
        """Unit descriptors (N, C) of points (N, 3) at `scale` > 1 times the voxel size.

        A point that is not in the downsampled cloud has the descriptor of the nearest one that is.
        """
        voxel = scale * self.voxel
        rows = voxel_downsample(points, voxel)
        downsampled = points[rows]
        seen_from = None if viewpoints is None else viewpoints[rows]
        features = _array(self.network(self._pyramid(downsampled, seen_from, voxel)))
        return features[cKDTree(downsampled).query(points)[1]] if len(points) else features

    def _pyramid(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, voxel: float
    ) -> Pyramid:
        log.info("describe: %d points, in cells of %g m", len(points), voxel)
        batch = PointBatch.from_clouds([points], None if viewpoints is None else [viewpoints])
        pyramid: Pyramid = self.network.pyramid(batch.to(self.device), voxel)
        return pyramid


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.float().cpu().numpy()
    return array


def _usable(scales: Sequence[float]) -> bool:
    """Whether these are 1 and then larger finite numbers."""
    if not isinstance(scales, Sequence) or not all(isinstance(scale, int | float) for scale in scales):
        return False
    return len(scales) > 0 and scales[0] == 1 and all(1 < scale < np.inf for scale in scales[1:])
