"""Recordings of simulated scenes, and their pairs: for training, or as a data set to validate on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from pcreg.datasets.jagged import Jagged
from pcreg.features.pretrained import MIN_OUTDOOR_VOXEL
from pcreg.geometry.se3 import inverse, transform, translation
from pcreg.io.pairs import Pair
from pcreg.kernels.grid import sample_cloud
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

OVERLAP_TOLERANCE = 0.02  # overlaps that differ by no more are equally likely
OVERLAP_CELL = 4  # voxels: edge of the cells by which overlap is estimated


@dataclass(frozen=True)
class Recording:
    """Clouds, each in its sensor's frame, and the poses of the sensor."""

    clouds: list[Tensor]  # (N, 3) float32 each, metres
    T_world_cloud: np.ndarray  # (clouds, 4, 4) float64

    def motion(self, source: int, target: int) -> np.ndarray:
        """T_target_source (4, 4) between two of the clouds."""
        return inverse(self.T_world_cloud[target]) @ self.T_world_cloud[source]

    def scaled(self, factor: float) -> "Recording":
        """The recording with all lengths times `factor`."""
        T = self.T_world_cloud.copy()
        T[:, :3, 3] *= factor
        return Recording([cloud * factor for cloud in self.clouds], T)

    def without_small(self, min_points: int) -> "Recording":
        """The recording without clouds of fewer than `min_points` points."""
        kept = [n for n, cloud in enumerate(self.clouds) if len(cloud) >= min_points]
        return Recording([self.clouds[n] for n in kept], self.T_world_cloud[kept])

    def thinned(self, spacing: float) -> "Recording":
        """The recording with one point per cell of `spacing` metres of each cloud."""
        return replace(self, clouds=[cloud[sample_cloud(cloud, spacing)] for cloud in self.clouds])

    @staticmethod
    def join(*parts: "Recording") -> "Recording":
        """Join several recordings of one scene."""
        clouds = [cloud for part in parts for cloud in part.clouds]
        return Recording(clouds, np.concatenate([part.T_world_cloud for part in parts]))


# (seed, index, device) -> the recording of scene number `index`, repeatable on the same machine
Recorder = Callable[[int, int, str], Recording]


@dataclass(frozen=True)
class ScenePairs:
    """A recording, its pairs that overlap enough, and its pairs without any overlap."""

    recording: Recording
    pairs: np.ndarray  # (P, 2), source and target
    overlap: np.ndarray  # (P,), of the smaller cloud, estimated
    apart: np.ndarray  # (Q, 2), source and target, that share no cell

    @staticmethod
    def of(recording: Recording, voxel: float, minimum_overlap: float) -> "ScenePairs":
        """Find the pairs by overlap in cells of OVERLAP_CELL times `voxel` metres."""
        if len(recording.clouds) < 2:
            return ScenePairs(recording, none := np.empty((0, 2), np.int64), np.empty(0), none)
        shared = shared_cells(recording, OVERLAP_CELL * voxel)
        overlap = overlaps(shared)
        pairs = np.argwhere((overlap >= minimum_overlap) & ~np.eye(len(overlap), dtype=bool))
        return ScenePairs(recording, pairs, overlap[tuple(pairs.T)], np.argwhere(shared == 0))

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw a pair (source, target) with uniform overlap over the range of all pairs."""
        missed = np.abs(self.overlap - rng.uniform(self.overlap.min(), self.overlap.max()))
        alike = np.flatnonzero(missed <= missed.min() + OVERLAP_TOLERANCE)
        return tuple(self.pairs[rng.choice(alike)].tolist())


def shared_cells(recording: Recording, edge: float) -> np.ndarray:
    """Number (n, n) of world cells of `edge` metres with points of both clouds."""
    clouds = zip(recording.T_world_cloud, recording.clouds, strict=True)
    in_world = Jagged.of([transform(T, cloud.double()) for T, cloud in clouds])
    cells = torch.floor(in_world.points / edge).long()
    cells = cells - cells.amin(0)
    size = cells.amax(0) + 1
    key = (cells[:, 0] * size[1] + cells[:, 1]) * size[2] + cells[:, 2]
    cell = torch.unique(key, return_inverse=True)[1]
    seen = torch.zeros(len(in_world.sizes), int(cell.max()) + 1, device=cell.device)
    seen[in_world.cloud, cell] = 1.0
    return (seen @ seen.T).cpu().numpy()


def overlaps(shared: np.ndarray) -> np.ndarray:
    """Overlap (n, n) of the smaller cloud, from shared cells (n, n); diagonal 0."""
    own = shared.diagonal()
    overlap = shared / np.minimum.outer(own, own).clip(min=1)
    np.fill_diagonal(overlap, 0.0)
    return overlap


def behind(points: Tensor) -> np.ndarray:
    """Place (3,) behind a cloud (N, 3), twice as far from the sensor as its far side."""
    middle = points.mean(0)
    radius = (points - middle).square().sum(1).mean().sqrt()
    return 2 * (middle + radius * torch.nn.functional.normalize(middle, dim=0)).cpu().numpy()


@dataclass(eq=False)
class Recorded:
    """Data set of up to `per_scene` pairs of each of `count` simulated scenes.

    Scene n depends only on (seed, n). `voxel` is the spacing in metres at which descriptors see the clouds.
    With behind=1 the origin of each source lies behind the cloud instead of at the sensor, with behind=2 the
    origin of each target, too. The command line checks types and bounds.
    """

    record: Recorder
    voxel: float
    seed: NonNegativeInt = 0
    count: PositiveInt = 4
    per_scene: PositiveInt = 5
    minimum_overlap: float = 0.1
    device: str = "auto"
    behind: Annotated[int, Field(ge=0, le=2)] = 0

    name = "simulated scenes"
    left_out = ()
    viewpoint = "sensor"

    def __post_init__(self) -> None:
        self.device = choose_device(self.device)
        self._clouds: dict[str, np.ndarray] = {}

    @property
    def outdoor(self) -> bool:
        return self.voxel >= MIN_OUTDOOR_VOXEL

    @cached_property
    def pairs(self) -> list[Pair]:
        return self._drawn[0]

    @property
    def apart(self) -> list[Pair]:
        """Up to `per_scene` pairs of each scene whose clouds share no cell."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[list[Pair], list[Pair]]:
        pairs: list[Pair] = []
        apart: list[Pair] = []
        for index in range(self.count):
            recording = self.record(self.seed, index, self.device)
            scene = ScenePairs.of(recording, self.voxel, self.minimum_overlap)
            rng = np.random.default_rng([self.seed, index])
            draws = 10 * self.per_scene if len(scene.pairs) else 0
            drawn = sorted({scene.draw(rng) for _ in range(draws)})
            for source, target in rng.permutation(drawn)[: self.per_scene].tolist():
                shared = scene.overlap[(scene.pairs == (source, target)).all(1)][0]
                pairs.append(self._pair(recording, index, source, target, float(shared)))
            drawn = rng.permutation(scene.apart)[: self.per_scene].tolist()
            apart += [self._pair(recording, index, source, target, 0.0) for source, target in drawn]
        return pairs, apart

    def _pair(self, recording: Recording, index: int, source: int, target: int, overlap: float) -> Pair:
        names, moves = [], []
        for side, n in enumerate((source, target)):
            cloud, place = recording.clouds[n].double(), np.zeros(3)
            if is_behind := side < self.behind:
                place = behind(cloud)
            names.append(f"scene-{index}/{n}" + ("-behind" if is_behind else ""))
            self._clouds[names[-1]] = cloud.cpu().numpy() - place
            moves.append(translation(-place))
        T = moves[1] @ recording.motion(source, target) @ inverse(moves[0])
        moves = tuple(moves) if self.behind else None
        return Pair(*names, T, scene=f"scene-{index}", overlap=overlap, moves=moves)

    def cloud(self, name: str) -> np.ndarray:
        if self._drawn and name not in self._clouds:
            raise InputError(f"{name}: no such cloud; names are those of the pairs")
        return self._clouds[name]
