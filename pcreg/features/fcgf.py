"""The learned descriptor: fully convolutional geometric features of a trained network."""

import logging
import math
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcreg.arrays import Array
from pcreg.features.base import Description, check_voxel, downsampled
from pcreg.features.pretrained import WEIGHTS
from pcreg.models.inference import InferenceResUNet
from pcreg.models.weights_file import read_weights
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    from pcreg.models.resunet import ResUNet
    from pcreg.models.torch_inference import TorchInference

log = logging.getLogger(__name__)

MIN_VOXEL = 1e-4  # metres; below this size clouds are enlarged, as the network rounds to micrometres
SCALES = (1.0, 1.4, 2.0)  # of the voxel size; see docs/notes/2026-11-22-descriptors.md


class FCGF:
    """Fully convolutional geometric features (Choy, Park and Koltun, ICCV 2019) of a trained network.

    The network has no unit of length: with twice the voxel size its receptive field has twice the width.

    Args:
        network: A network in PyTorch, which is moved to the device, or one for inference on the CPU.
        device: `cpu`, `cuda`, `cuda:N` or `auto`; an InferenceResUNet always runs on the CPU.
        scales: Multiples of the voxel size; the descriptors of all scales are concatenated.
    """

    name = "fcgf"
    device: str
    network: "InferenceResUNet | TorchInference"

    def __init__(
        self,
        network: "ResUNet | InferenceResUNet",
        device: str = "cpu",
        scales: Sequence[float] = SCALES,
    ) -> None:
        self.scales = check_scales(scales)
        if isinstance(network, InferenceResUNet):
            self.device, self.network = "cpu", network
        else:
            from pcreg.models.torch_inference import TorchInference  # PyTorch takes a second to import

            self.device = choose_device(device)
            self.network = TorchInference(network, self.device)
        self.voxel = network.architecture.voxel
        # Reflection keeps distances and heights over tangent planes
        self.reflection_invariant = network.architecture.kernel == "ppf"
        several = ", ".join(f"{scale:g}" for scale in self.scales)
        self.fingerprint = self.network.fingerprint + (f", scales {several}" if len(self.scales) > 1 else "")

    @staticmethod
    def load(
        weights: str | Path | None = None,
        device: str = "cpu",
        voxel: float | None = None,
        scales: Sequence[float] = SCALES,
    ) -> "FCGF":
        """Load the descriptor of a weight file.

        Args:
            weights: A .safetensors file of `pcreg train`; by default the shipped one.
            device: `cpu`, `cuda`, `cuda:N` or `auto`; for a GPU, threads start to compile the kernels.
            voxel: Voxel size in metres; by default that of the training.
            scales: Multiples of the voxel size; the descriptors of all scales are concatenated.

        Raises:
            InputError: The file, the voxel size or the scales cannot be used.
        """
        learned = FCGF(_load(weights or WEIGHTS, choose_device(device)), device, scales)
        return learned if voxel is None else learned.at(voxel)

    def at(self, voxel: float) -> "FCGF":
        """Return a copy with another voxel size in metres; raise InputError unless that is positive."""
        check_voxel(voxel)
        other = copy(self)
        other.voxel = voxel
        return other

    @property
    def label(self) -> str:
        """Name, checksum of the weights, and the voxel size of the training if it differs."""
        trained = self.network.architecture.voxel
        elsewhere = "" if trained == self.voxel else f", trained at {trained:g} m"
        return f"FCGF (learned, weights {self.fingerprint}{elsewhere})"

    def describe(self, points: Array, viewpoints: Array | None = None) -> Description:
        """Describe a cloud, as in `pcreg.features.base.Descriptor`; results repeat bit by bit."""
        kept, seen_from = downsampled(points, viewpoints, self.voxel, self.device)
        log.info("describe: %d points, in cells of %g m", len(kept), self.voxel)
        # A power of two, as other factors would round coordinates
        factor = 1.0 if self.voxel >= MIN_VOXEL else 2.0 ** -math.floor(math.log2(self.voxel))
        enlarged, places = kept * factor, None if seen_from is None else seen_from * factor
        return Description(kept, self.network.describe(enlarged, places, self.voxel * factor, self.scales))


def _load(weights: str | Path, device: str) -> "ResUNet | InferenceResUNet":
    """Load a network for a device; on the CPU without PyTorch, unless the network has `snap`."""
    stored = read_weights(weights)
    if device == "cpu" and not stored.architecture.snap:
        return InferenceResUNet(stored)
    from pcreg.models.weights import network_of

    if device != "cpu":
        from pcreg.models.torch_inference import compile_kernels

        compile_kernels(stored.architecture, device)
    return network_of(stored)


def check_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """Return the scales as a tuple; raise InputError unless they are 1 and then larger finite numbers."""
    numbers = isinstance(scales, Sequence) and all(isinstance(scale, int | float) for scale in scales)
    if not numbers or list(scales[:1]) != [1] or not all(1 < scale < np.inf for scale in scales[1:]):
        raise InputError(f"scales={scales}: give 1 first and then larger ones, such as [1, 1.4, 2]")
    return tuple(scales)
