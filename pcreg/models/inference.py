"""ResUNet for inference on the CPU, in NumPy and SciPy.

Importing PyTorch takes longer than registering a small pair. The layers are those of pcreg.models.resunet,
with the batch norms folded into the weights.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.kernels.cpu.conv import Convolution, sort_triplets
from pcreg.kernels.cpu.neighbors import Rows
from pcreg.kernels.cpu.pyramid import search_levels
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig, rounded
from pcreg.models.weights_file import STATISTICS, StoredWeights
from pcreg.runtime import parallel

EPSILON = np.float32(1e-5)  # default of PyTorch's batch norm

Floats = NDArray[np.float32]


class InferenceResUNet:
    """Network without `snap` that computes one descriptor per point."""

    def __init__(self, stored: StoredWeights) -> None:
        self.architecture, tensors = stored.architecture, stored.tensors
        self._head = [np.ascontiguousarray(tensors[f"{name}.weight"].T) for name in ("conv1_tr", "final")]
        self._bias = tensors["final.bias"]
        with ThreadPoolExecutor(1) as thread:  # the checksum takes as long as the folding
            fingerprint = thread.submit(lambda: stored.fingerprint)
            self._layers = _folded(tensors)
        self.fingerprint = fingerprint.result()

    def describe(
        self,
        points: NDArray[np.float64],
        viewpoints: NDArray[np.float64] | None,
        voxel: float,
        scales: Sequence[float] = (1.0,),
    ) -> Floats:
        """Compute unit descriptors (N, S C) of points (N, 3), one point per voxel, at S scales.

        `voxel` is in metres, and `viewpoints` (N, 3) default to the origin. The descriptors at all `scales`,
        multiples of the voxel size with 1 first, are concatenated. For a larger scale the cloud is
        downsampled; a point that is left out has the descriptor of the nearest point kept.
        """
        with parallel.one_for_blas():
            first = self._describe(points, viewpoints, voxel)
            others = [self._at_scale(points, viewpoints, scale * voxel) for scale in scales[1:]]
            return np.concatenate([first, *others], 1) / np.float32(len(scales) ** 0.5)

    def _at_scale(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, voxel: float
    ) -> Floats:
        """Unit descriptors (N, C) of points (N, 3) at another voxel size."""
        rows = voxel_downsample(points, voxel)
        downsampled = points[rows]
        seen_from = None if viewpoints is None else viewpoints[rows]
        features = self._describe(downsampled, seen_from, voxel)
        return features[cKDTree(downsampled).query(points)[1]] if len(points) else features

    def _describe(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, voxel: float
    ) -> Floats:
        """Unit descriptors (N, C) of points (N, 3), one per `voxel` metres."""
        stem, same, down, up = _neighbourhoods(points, viewpoints, replace(self.architecture, voxel=voxel))
        weight, bias = self._layers["conv1"]
        level1 = self._block("1", stem.T.astype(np.float32) @ weight[:, 0] + bias, same[0])
        level2 = self._block("2", self._conv("conv2", level1, down[0]), same[1])
        level3 = self._block("3", self._conv("conv3", level2, down[1]), same[2])
        level4 = self._block("4", self._conv("conv4", level3, down[2]), same[3])
        out = self._block("4_tr", self._conv("conv4_tr", level4, up[2]), same[2])
        out = np.concatenate([out, level3], 1)
        out = self._block("3_tr", self._conv("conv3_tr", out, up[1]), same[1])
        out = np.concatenate([out, level2], 1)
        out = self._block("2_tr", self._conv("conv2_tr", out, up[0]), same[0])
        first, last = self._head
        out = np.maximum(np.concatenate([out, level1], 1) @ first, 0) @ last + self._bias
        out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), np.float32(1e-12))
        return out

    def _block(self, layer: str, features: Floats, within: Convolution) -> Floats:
        """Apply a residual block."""
        out = self._conv(f"block{layer}.conv1", features, within)
        np.maximum(out, 0, out=out)
        out = self._conv(f"block{layer}.conv2", out, within)
        out += features
        np.maximum(out, 0, out=out)
        return out

    def _conv(self, name: str, features: Floats, into: Convolution) -> Floats:
        """Apply a convolution and its batch norm."""
        weight, bias = self._layers[name]
        out = into(features, weight)
        out += bias
        return out


def _folded(tensors: dict[str, NDArray[Any]]) -> dict[str, tuple[Floats, Floats]]:
    """Weight (K, C, M) and bias (M,) of each convolution with its norm folded in."""
    layers = {}
    for conv in [name.removesuffix(".weight") for name in tensors if tensors[name].ndim == 4]:
        norm = conv.replace("conv", "norm")
        scale, shift, mean, variance = (tensors[f"{norm}.{each}"] for each in STATISTICS)
        scale = scale / np.sqrt(variance + EPSILON)
        layers[conv] = tensors[f"{conv}.weight"][:, 0] * scale, shift - mean * scale
    return layers


def _neighbourhoods(
    points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, config: PyramidConfig
) -> tuple[NDArray[np.int32], list[Convolution], list[Convolution], list[Convolution]]:
    """Fields `stem` (K, N), `same` and `down` of a Pyramid of points (N, 3), and `down` transposed."""
    low = points.min(0) if len(points) else np.zeros(3)
    levels, rows = [rounded(points - low).astype(np.float32)], []
    for level in range(1, config.n_levels):
        origin = np.full(3, -config.voxel / 2)
        rows.append(voxel_downsample(levels[-1].astype(np.float64), config.voxel * 2**level, origin))
        levels.append(levels[-1][rows[-1]])
    lengths = [np.array([len(level)]) for level in levels]
    seen_from = np.broadcast_to(-low if viewpoints is None else viewpoints - low, points.shape)
    stem, within, onto = search_levels(levels, lengths, rows, seen_from.astype(np.float32), config)

    def convolution(i: Rows, j: Rows, k: Rows, out: int, into: int) -> Convolution:
        n_out, n_in = len(levels[out]), len(levels[into])
        return Convolution(*sort_triplets(i, j, k, n_out, n_in, KERNEL_SIZE**3), n_out, n_in)

    same = [convolution(*each, level, level) for level, each in enumerate(within)]
    down, up = [], []
    for level, (i, j, k) in enumerate(onto):
        down.append(convolution(i, j, k, level + 1, level))
        up.append(convolution(j, i, k, level, level + 1))
    return stem, same, down, up
