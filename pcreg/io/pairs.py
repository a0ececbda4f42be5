"""Pairs of clouds with their ground truth, and the interface of data sets of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from pcreg.geometry.se3 import inverse
from pcreg.runtime.errors import InputError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Pair:
    """Two clouds by name, and the true motion between them."""

    source: str  # name for `PairDataset.cloud`
    target: str
    T_target_source: np.ndarray  # (4, 4) float64, moves source into target
    scene: str = ""  # tables average within a scene first
    overlap: float | None = None  # fraction of the source that has a partner in the target
    information: np.ndarray | None = None  # (6, 6) of gt.info, for the official 3DMatch recall
    consecutive: bool = False  # 3DMatch: recall leaves out neighbouring fragments
    # motions (4, 4) of source and target out of the frames in which errors are measured
    moves: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def name(self) -> str:
        """Names of source and target."""
        return f"{self.source}->{self.target}"

    def before_moves(self, T_target_source: np.ndarray) -> np.ndarray:
        """Convert a motion (4, 4) between the clouds to one between their frames before `moves`."""
        if self.moves is None:
            return T_target_source
        source, target = self.moves
        return inverse(target) @ T_target_source @ source


class PairDataset(Protocol):
    """Interface of a data set for training and evaluation."""

    name: str  # of the benchmark, in tables
    outdoor: bool  # LiDAR scans of large places, whose errors have other limits than those of rooms
    viewpoint: str  # `sensor` if the origin of every cloud is its sensor, else `auto`
    pairs: list[Pair]
    left_out: Sequence[str]  # pairs of the benchmark that this copy lacks, with the reason

    def cloud(self, name: str) -> np.ndarray:
        """Points (N, 3) float64, metres, of the cloud of this name, finite rows only.

        Raises InputError, naming the file and the remedy, when it is missing or unreadable.
        """
        ...


def points_of(dataset: PairDataset, name: str) -> np.ndarray:
    """Points of a cloud of the data set; InputError for anything but rows x y z of floats."""
    points = dataset.cloud(name)
    if isinstance(points, np.ndarray) and points.dtype.kind == "f" and points.shape[1:] == (3,):
        return points
    shape = f" {points.shape} of {points.dtype}" if isinstance(points, np.ndarray) else ""
    raise InputError(
        f"{type(dataset).__name__}.cloud({name!r}) returned {type(points).__name__}{shape}; have it return "
        "an array (N, 3) of floats, in metres"
    )


def keep_evenly(dataset: PairDataset, limit: int | None) -> None:
    """Keep at most `limit` pairs of a data set, spread evenly, and compute their ground truth.

    A data set may have a method `keep_evenly(limit)`, which saves computing that of the other pairs.
    """
    if keep := getattr(dataset, "keep_evenly", None):
        keep(limit)
    dataset.pairs = evenly(dataset.pairs, limit)


def evenly(items: list[Item], limit: int | None) -> list[Item]:
    """Select at most `limit` items, spread evenly over the list and in its order; None keeps all."""
    if limit is None or limit >= len(items):
        return items
    if limit < 0:
        raise InputError(f"limit={limit}: give a number of pairs")
    return [items[row] for row in np.linspace(0, len(items) - 1, limit).round().astype(int)]
