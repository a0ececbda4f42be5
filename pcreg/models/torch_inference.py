"""ResUNet in PyTorch for inference on arrays: on a GPU, and for what pcreg.models.inference leaves out."""

from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pcreg.kernels.point_batch import PointBatch
from pcreg.models.architecture import NODE_LEVEL
from pcreg.models.inference import NetworkOutput
from pcreg.models.resunet import ResUNet
from pcreg.models.weights import fingerprint
from pcreg.runtime.deterministic import ONE_THREAD


class TorchInference:
    """A network on a device."""

    def __init__(self, network: ResUNet, device: str) -> None:
        self.architecture, self.fingerprint = network.architecture, fingerprint(network)
        self._network, self._device = network.to(device).eval(), device

    def describe(
        self, points: NDArray[np.float64], viewpoints: NDArray[np.float64] | None, voxel: float
    ) -> NetworkOutput:
        """That of pcreg.models.inference.InferenceResUNet.

        On a GPU it repeats to the last bit with torch.use_deterministic_algorithms alone.
        On the CPU it takes one core: threads would wait for one another at every one of many small operators,
        and beside other processes wait a hundred times as long as they compute.
        """
        with ONE_THREAD if self._device == "cpu" else nullcontext(), torch.inference_mode():
            batch = PointBatch.from_clouds([points], None if viewpoints is None else [viewpoints])
            pyramid = self._network.pyramid(batch.to(self._device), voxel)
            features, node_features = self._network.features(pyramid)
            nodes = pyramid.levels[NODE_LEVEL].points
            normals = pyramid.normals[NODE_LEVEL] if pyramid.normals else torch.zeros_like(nodes)
            return NetworkOutput(*map(_array, (features, nodes, normals, node_features)))


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.float().cpu().numpy()
    return array
