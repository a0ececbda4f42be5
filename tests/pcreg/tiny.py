"""Small surfaces as a data set and as simulated scenes, and a network that trains on them in seconds."""

import numpy as np
import torch

from pcreg.datasets.augment import Augmentation
from pcreg.datasets.collate import Batches
from pcreg.datasets.preparation import Preparation
from pcreg.datasets.simulated.recorded import Recording
from pcreg.geometry.se3 import inverse, rotation_about, se3, transform
from pcreg.io.pairs import Pair
from pcreg.models.resunet import Architecture, ResUNet
from tests.pcreg.scenes import wavy_sheet

VOXEL = 0.05
T = se3(rotation_about([0, 0, 1], 30), np.array([0.3, 0.1, 0.0]))


class Sheets:
    """Data set of `count` pairs of a wavy sheet and its moved copy, with a new sheet per pair."""

    def __init__(self, count: int = 4):
        self.pairs = [Pair(f"{n}/source", f"{n}/target", T) for n in range(count)]

    def cloud(self, name: str) -> np.ndarray:
        number, side = name.split("/")
        points = wavy_sheet(1500, seed=int(number))
        return points if side == "source" else transform(T, points)


def record(seed: int, index: int, device: str) -> Recording:
    """A scene for the endless batches: one wavy sheet, seen twice."""
    points = wavy_sheet(1500, seed=100 * seed + index)
    clouds = [torch.from_numpy(cloud).float().to(device) for cloud in (points, transform(T, points))]
    return Recording(clouds, np.stack([np.eye(4), inverse(T)]))


def architecture(voxel: float = VOXEL, **more) -> Architecture:
    return Architecture(voxel, out_channels=8, encoder=(4, 4, 8, 8), decoder=(8, 8, 8, 8), **more)


def network(seed: int = 0, **settings) -> ResUNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResUNet(architecture(**settings))


def batches(dataset=None, batch_size: int = 2, workers: int = 0, rotate: bool = True) -> Batches:
    augment = Augmentation(rotate=rotate, jitter=0.002)
    preparation, geometry = Preparation(VOXEL, augment, 1.5 * VOXEL), architecture()
    return Batches(dataset or Sheets(), preparation, geometry, batch_size=batch_size, workers=workers)
