"""A benchmark made harder in a known way: fewer beams, or origins that are no sensors."""

import os
import zlib
from dataclasses import replace

import numpy as np

from pcreg.geometry.beams import beam_numbers
from pcreg.geometry.se3 import inverse, se3
from pcreg.io.pairs import Pair, PairDataset
from pcreg.runtime.errors import InputError

THINNED = "thinned:"  # before the name of a source: the same scan may be the whole target of another pair


class EveryBeam:
    """A data set of LiDAR scans with every `step`-th beam of each source alone, as if of another sensor.

    The first beam is kept (pcreg/geometry/beams.py numbers them); targets stay whole. Raises InputError for a
    step that is none and for clouds of rooms, and in `cloud` for a source whose beams cannot be told apart
    or are fewer than twice `step`.
    """

    def __init__(self, dataset: PairDataset, step: int):
        if not (step >= 1 and step == int(step)):
            raise InputError(f"data.beams={step:g}: give a whole number, 4 for every fourth beam")
        if not dataset.outdoor:
            raise InputError(
                f"data.beams={step:g}: {dataset.name} are no LiDAR scans; leave it out, or for own scans "
                "of a LiDAR set data.voxel=0.3"
            )
        self._whole, self.step = dataset, int(step)
        self.name = f"{dataset.name}, beams={step:g}"
        self.left_out, self.outdoor, self.viewpoint = dataset.left_out, dataset.outdoor, dataset.viewpoint
        self.pairs: list[Pair] = [replace(pair, source=THINNED + pair.source) for pair in dataset.pairs]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) of a source, thinned, or of a target."""
        if not name.startswith(THINNED):
            return self._whole.cloud(name)
        points = self._whole.cloud(name.removeprefix(THINNED))
        beams = beam_numbers(points)
        if beams is None or beams.max() + 1 < 2 * self.step:
            told = "no beams" if beams is None else f"{beams.max() + 1} beams"
            raise InputError(
                f"{name.removeprefix(THINNED)}: {told} can be told apart, and data.beams={self.step} needs "
                "scans of a spinning LiDAR with its sensor at the origin; leave data.beams out"
            )
        return points[beams % self.step == 0]


class Moved:
    """A data set with each cloud moved by `metres`, in a direction that its name and the `seed` draw.

    The truth follows, T' = M_target T M_source^-1. Pairs keep both moves, as errors are measured between
    the frames before them: an angle that is wrong by a degree would else count for 17 cm more at ten metres.
    Where the sensor stood is no longer said.
    """

    viewpoint = "auto"

    def __init__(self, dataset: PairDataset, metres: float, seed: int = 0):
        if not (np.isfinite(metres) and metres >= 0):
            raise InputError(f"data.moved={metres:g}: give metres, 0 for none")
        self._still, self.metres, self.seed = dataset, metres, seed
        self.name = f"{dataset.name}, moved={metres:g}"
        self.left_out, self.outdoor = dataset.left_out, dataset.outdoor
        self.pairs: list[Pair] = [self._moved(pair) for pair in dataset.pairs]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) of a cloud, moved."""
        return self._still.cloud(name) + self._offset(name)

    def _offset(self, name: str) -> np.ndarray:
        rng = np.random.default_rng([self.seed, zlib.crc32(os.fsencode(name))])
        direction = rng.standard_normal(3)
        return self.metres * direction / np.linalg.norm(direction)

    def _moved(self, pair: Pair) -> Pair:
        source, target = (se3(np.eye(3), self._offset(name)) for name in (pair.source, pair.target))
        T, compat = (
            None if T is None else target @ T @ inverse(source) for T in (pair.T_target_source, pair.T_compat)
        )
        return replace(pair, T_target_source=T, T_compat=compat, moves=(source, target))
