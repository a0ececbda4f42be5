"""Clouds of one scene from several places, of which training draws pairs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import inverse, transform
from pcreg.kernels.transfer import moved

OVERLAP_TOLERANCE = 0.02  # overlaps that differ by no more are equally likely
OVERLAP_CELL = 4  # voxels: edge of the cells by which overlap is estimated


@dataclass(frozen=True)
class Recording:
    """Clouds, each in its sensor's frame, and where the sensor stood."""

    clouds: list[Tensor]  # (N, 3) float32 each, metres
    T_world_cloud: np.ndarray  # (clouds, 4, 4) float64

    def motion(self, source: int, target: int) -> np.ndarray:
        """T_target_source (4, 4) between two of the clouds."""
        return inverse(self.T_world_cloud[target]) @ self.T_world_cloud[source]


# (seed, index, device) -> the recording of scene number `index`
Recorder = Callable[[int, int, str], Recording]


@dataclass(frozen=True)
class ScenePairs:
    """A recording, those of its pairs that overlap enough, and those that do not at all."""

    recording: Recording
    pairs: np.ndarray  # (P, 2), source and target
    overlap: np.ndarray  # (P,), of the smaller cloud, estimated
    apart: np.ndarray  # (Q, 2), source and target, that share no cell

    @staticmethod
    def of(recording: Recording, voxel: float, minimum_overlap: float) -> "ScenePairs":
        """Overlap is estimated in cells OVERLAP_CELL times as wide as `voxel`, in metres."""
        if len(recording.clouds) < 2:
            return ScenePairs(recording, none := np.empty((0, 2), np.int64), np.empty(0), none)
        shared = shared_cells(recording, OVERLAP_CELL * voxel)
        overlap = shared / np.minimum.outer(shared.diagonal(), shared.diagonal()).clip(min=1)
        np.fill_diagonal(overlap, 0.0)
        pairs = np.argwhere(overlap >= minimum_overlap)
        return ScenePairs(recording, pairs, overlap[tuple(pairs.T)], np.argwhere(shared == 0))

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        """A pair, its overlap uniform over the range of all, even where most pairs have little."""
        missed = np.abs(self.overlap - rng.uniform(self.overlap.min(), self.overlap.max()))
        return tuple(
            self.pairs[rng.choice(np.flatnonzero(missed <= missed.min() + OVERLAP_TOLERANCE))].tolist()
        )


def shared_cells(recording: Recording, edge: float) -> np.ndarray:
    """Numbers (n, n) of cells of `edge` metres in the world that hold points of both clouds of a pair."""
    clouds = recording.clouds
    sizes = torch.tensor([len(cloud) for cloud in clouds])
    number = moved(torch.repeat_interleave(torch.arange(len(clouds)), sizes), clouds[0].device)
    T_world_cloud = moved(torch.from_numpy(recording.T_world_cloud), clouds[0].device)
    in_world = [transform(T, cloud.double()) for cloud, T in zip(clouds, T_world_cloud, strict=True)]
    cells = torch.floor(torch.cat(in_world) / edge).long()
    cells = cells - cells.amin(0)
    size = cells.amax(0) + 1
    key = (cells[:, 0] * size[1] + cells[:, 1]) * size[2] + cells[:, 2]
    cell = torch.unique(key, return_inverse=True)[1]
    seen = torch.zeros(len(clouds), int(cell.max()) + 1, device=cell.device)
    seen[number, cell] = 1.0
    return (seen @ seen.T).cpu().numpy()
