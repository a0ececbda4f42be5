"""Devices of tests: the CPU by NumPy, and by torch a GPU or else the CPU."""

import numpy as np
import torch

from pcreg.arrays import to_device, to_host
from pcreg.features.fcgf import FCGF

TORCH = "cuda" if torch.cuda.is_available() else "cpu:0"
DEVICES = ["cpu", TORCH]


def on_both(*arrays: np.ndarray) -> list[tuple]:
    """The arrays for NumPy, and as tensors."""
    return [tuple(to_device(array, device) for array in arrays) for device in DEVICES]


class NetworkOnTorch:
    """The network of NumPy, for tensors."""

    def __init__(self, network, device: str) -> None:
        self.network, self.device = network, device

    def __getattr__(self, name: str):
        return getattr(self.network, name)

    def describe(self, points, viewpoints, *settings):
        viewpoints = None if viewpoints is None else to_host(viewpoints)
        return to_device(self.network.describe(to_host(points), viewpoints, *settings), self.device)


def load_on(weights, device: str) -> FCGF:
    """Load as FCGF.load does, with the arithmetic of the CPU on any device."""
    learned = FCGF(FCGF.load(weights).network)
    if device != "cpu":
        learned.device, learned.network = device, NetworkOnTorch(learned.network, device)
    return learned
