"""Random changes to training pairs and their truth."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat
from torch import Tensor

from pcreg.datasets.jagged import Jagged
from pcreg.geometry.se3 import inverse, limited_rotation, random_rotation, se3
from pcreg.kernels.transfer import to_device
from pcreg.runtime.errors import InputError

BEAM_SPACING = 0.4  # degrees of elevation that are dropped together, about the spacing of 64 beams
BANDS = int(182 / BEAM_SPACING)

Motions: TypeAlias = list[np.ndarray]  # (4, 4) float64, T_target_source of each pair
Share: TypeAlias = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True)
class Augmentation:
    """Random crops, dropped points and beams, scales, viewpoints, rotations, jitter.

    The order of clouds is: the sources of all pairs, then the targets. Every change also updates the true
    motions. The command line checks types and bounds.
    """

    rotate: bool = True  # each cloud about its origin, by a rotation that is uniform over all rotations
    max_relative_rotation: Annotated[float, Field(ge=0, le=180)] = 180.0  # degrees; 180: independent
    scale: tuple[float, float] = (1.0, 1.0)  # range of the factor by which both clouds of a pair are scaled
    jitter: NonNegativeFloat = 0.0  # metres, standard deviation per axis
    crop: Share = 0.0  # largest fraction of a cloud that a random plane cuts off
    drop: Share = 0.0  # largest fraction of a cloud's points that are dropped at random
    beams: Share = 0.0  # largest fraction of a spinning sensor's beams that are dropped
    viewpoint: Share = 0.0  # fraction of the clouds whose origin moves along a ray, away from the sensor

    def __post_init__(self):
        low, high = self.scale
        if not 0 < low <= high:
            raise InputError(f"augment.scale={list(self.scale)}: give [low, high] with 0 < low <= high")

    def reduce(self, clouds: Jagged, motions: Motions, rng: np.random.Generator) -> tuple[Jagged, Motions]:
        """Crop clouds, drop points, scale pairs, move viewpoints, in the clouds' frames."""
        if self.crop or self.drop or self.beams:
            clouds = clouds.take(self.kept(clouds, rng).nonzero()[:, 0])
        factor = rng.uniform(*self.scale, len(motions))
        points = clouds.points * clouds.of_points(np.tile(factor, 2))[:, None]
        places = self._viewpoints(clouds, points, rng)
        moved = []
        for T, scale, source, target in zip(motions, factor, *np.split(places, 2), strict=True):
            T = T.copy()
            T[:3, 3] = scale * T[:3, 3] + T[:3, :3] @ source - target
            moved.append(T)
        return Jagged(points - clouds.of_points(places), clouds.sizes), moved

    def move(self, clouds: Jagged, motions: Motions, rng: np.random.Generator) -> tuple[Jagged, Motions]:
        """Rotate clouds and add jitter; returns the clouds and their true motions."""
        moved, count = list(motions), len(motions)
        if self.rotate:
            turns = [random_rotation(rng) for _ in motions]
            others = [limited_rotation(rng, self.max_relative_rotation) @ turn for turn in turns]
            turns = [se3(R, np.zeros(3)) for R in (*turns, *others)]
            clouds = clouds.moved(turns)
            moved = [turns[count + n] @ T @ inverse(turns[n]) for n, T in enumerate(motions)]
        points = clouds.points
        if self.jitter:
            noise = torch.empty_like(points).normal_(generator=_noise(points, rng))
            points = points + self.jitter * noise
        return Jagged(points, clouds.sizes), moved

    def _viewpoints(self, clouds: Jagged, points: Tensor, rng: np.random.Generator) -> np.ndarray:
        """New origins (B, 3) of clouds: zero, or on rays in free space, so that few normals flip."""
        places, sizes = np.zeros((len(clouds.sizes), 3)), np.array(clouds.sizes)
        first = np.cumsum(sizes) - sizes
        if self.viewpoint:
            moved = np.flatnonzero((rng.random(len(sizes)) < self.viewpoint) & (sizes > 0))
            rows = (first + rng.integers(np.maximum(sizes, 1)))[moved]
            found = points[to_device(torch.from_numpy(rows), points.device)].cpu().numpy()
            places[moved] = rng.uniform(0, 0.5, (len(moved), 1)) * found
        return places

    def kept(self, clouds: Jagged, rng: np.random.Generator) -> Tensor:
        """Mask (N,) of the points that are neither cropped nor dropped."""
        points, count = clouds.points, len(clouds.sizes)
        noise = _noise(points, rng)
        kept = torch.ones(len(points), dtype=torch.bool, device=points.device)
        if self.crop:
            directions = np.stack([random_rotation(rng)[0] for _ in range(count)])
            cut = np.floor(rng.uniform(0, self.crop, count) * clouds.sizes)
            kept &= _rank(clouds, (points * clouds.of_points(directions)).sum(1)) >= clouds.of_points(cut)
        if self.drop:
            uniform = torch.rand(len(points), generator=noise, device=points.device)
            kept &= uniform >= clouds.of_points(rng.uniform(0, self.drop, count))
        if self.beams:
            elevation = torch.atan2(points[:, 2], torch.hypot(points[:, 0], points[:, 1]))
            start = 90 + clouds.of_points(rng.uniform(0, BEAM_SPACING, count))
            bands = torch.floor((torch.rad2deg(elevation) + start) / BEAM_SPACING).long()
            share = to_device(torch.from_numpy(rng.uniform(0, self.beams, (count, 1))), points.device)
            uniform = torch.rand((count, BANDS), generator=noise, device=points.device)
            kept &= ~(uniform < share)[clouds.cloud, bands]
        return kept


def _rank(clouds: Jagged, values: Tensor) -> Tensor:
    """Rank (N,) of each value (N,) among the values of its cloud."""
    order = values.argsort(stable=True)
    order = order[clouds.cloud[order].argsort(stable=True)]  # cloud by cloud
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    return rank - clouds.first[clouds.cloud]


def _noise(points: Tensor, rng: np.random.Generator) -> torch.Generator:
    """Random generator on the device of the points, seeded by `rng`."""
    return torch.Generator(points.device).manual_seed(int(rng.integers(2**63)))
