"""Data sets made of others: fewer beams, moved origins, or a mixture of two."""

import os
import zlib
from dataclasses import replace

import numpy as np

from pcreg.datasets.beams import beam_numbers
from pcreg.geometry.se3 import inverse, se3
from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.runtime.errors import InputError

# Prefixes of names of clouds: a scan may be the source of one pair and, whole, the target of another
FEWER_BEAMS = "beams:"
REPLAYED = "replay:"


class EveryBeam:
    """A data set of LiDAR scans with every `step`-th beam of each source, as of another sensor.

    The first beam is kept; targets stay whole. Raises InputError for a step that is no positive whole number
    and for indoor clouds, and in `cloud` for a source whose beams cannot be separated or are fewer than twice
    `step`.
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
        self.pairs: list[Pair] = [replace(pair, source=FEWER_BEAMS + pair.source) for pair in dataset.pairs]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) of a source, on every `step`-th beam, or of a target."""
        if not name.startswith(FEWER_BEAMS):
            return self._whole.cloud(name)
        points = self._whole.cloud(name.removeprefix(FEWER_BEAMS))
        beams = beam_numbers(points)
        if beams is None or beams.max() + 1 < 2 * self.step:
            found = "no beams" if beams is None else f"{beams.max() + 1} beams"
            raise InputError(
                f"{name.removeprefix(FEWER_BEAMS)}: {found} can be separated, and data.beams={self.step} "
                "needs scans of a spinning LiDAR with its sensor at the origin; leave data.beams out"
            )
        return points[beams % self.step == 0]


class Moved:
    """A data set with each cloud moved by `metres`, in a random direction by its name and the `seed`.

    The truth follows, T' = M_target T M_source^-1. Pairs keep both moves: errors are measured between the
    frames before them, as one degree adds 17 cm at ten metres. The viewpoint is unknown.
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


class Mixture:
    """All pairs of `own`, and pairs of `replayed` as the fraction `share` of the whole, against forgetting.

    The replayed pairs are spread evenly over their list, and repeated if it is too short. Raises InputError
    for a share outside 0 to 1 and for a data set without pairs.
    """

    def __init__(self, own: PairDataset, replayed: PairDataset, share: float):
        if not 0 < share < 1:
            raise InputError(f"replay_share={share:g}: a fraction of the pairs is needed, such as 0.3")
        if not replayed.pairs:
            raise InputError("replay: the data set has no pairs; check replay.*")
        self._own, self._replayed = own, replayed
        count = round(len(own.pairs) * share / (1 - share))
        times, rest = divmod(count, len(replayed.pairs))
        drawn = times * replayed.pairs + (evenly(replayed.pairs, rest) if rest else [])
        self.pairs: list[Pair] = own.pairs + [
            replace(pair, source=REPLAYED + pair.source, target=REPLAYED + pair.target) for pair in drawn
        ]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of a cloud of either data set."""
        if name.startswith(REPLAYED):
            return self._replayed.cloud(name.removeprefix(REPLAYED))
        return self._own.cloud(name)
