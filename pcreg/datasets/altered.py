"""Data sets derived from others: fewer beams, shifted clouds, mixtures."""

import os
import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks

from pcreg.geometry.se3 import inverse, translation
from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.runtime.errors import InputError

# Prefixes of cloud names: the same scan may be a source with fewer beams and, in another pair, a whole target
FEWER_BEAMS = "beams:"
REPLAYED = "replay:"

# Separation of beams
BIN_DEGREES = 0.02  # bin width of the histogram of elevations
SIGMAS_DEGREES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)  # smoothing widths that are tried
MIN_PROMINENCE = 0.15  # of a peak, as a fraction of the 90th percentile of the histogram
MIN_DEVIATIONS = 4.0  # prominence of a peak, in standard deviations of random counts
# Fraction of the points that lie in peaks: 0.15 in a de-skewed scan of 64 beams, 0.5 and more in raw scans.
MIN_PEAK_FRACTION = 0.12
MAX_STEP_DEGREES = 1.0, 0.1  # largest median change of azimuth and elevation from one point to the next


class EveryBeam:
    """Data set of LiDAR scans of which the sources, or `both` clouds, keep only every `step`-th beam.

    Sources alone look as if another sensor had recorded them. Raises InputError if `step` is not a positive
    whole number, and for indoor clouds. `cloud` raises InputError for a cloud whose beams cannot be
    separated, or that has fewer than 2 * `step` beams.
    """

    def __init__(self, dataset: PairDataset, step: int, both: bool = False):
        if not (step >= 1 and step % 1 == 0):
            raise InputError(f"data.beams={step:g}: give a whole number, 4 for every fourth beam")
        if not dataset.outdoor:
            raise InputError(
                f"data.beams={step:g}: {dataset.name} are not LiDAR scans; leave it out, or for own scans "
                "of a LiDAR set data.voxel=0.3"
            )
        self._whole, self.step = dataset, int(step)
        self.name = f"{dataset.name}, beams={step:g}{' of both' if both else ''}"
        self.left_out, self.outdoor, self.viewpoint = dataset.left_out, dataset.outdoor, dataset.viewpoint
        sides = ("source", "target") if both else ("source",)
        self.pairs: list[Pair] = [
            replace(pair, **{side: FEWER_BEAMS + getattr(pair, side) for side in sides})
            for pair in dataset.pairs
        ]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) of a cloud, all or those on every `step`-th beam."""
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
    """Data set whose clouds are each shifted by `metres` in a random direction.

    The direction depends on the cloud's name and `seed`; truth becomes T' = M_target T M_source^-1. Errors
    are measured between the frames before `Pair.moves`: one degree would add 17 cm at ten metres.
    """

    viewpoint = "auto"  # unknown

    def __init__(self, dataset: PairDataset, metres: float, seed: int = 0):
        if not (np.isfinite(metres) and metres >= 0):
            raise InputError(f"data.moved={metres:g}: give metres, 0 for none")
        self._still, self.metres, self.seed = dataset, metres, seed
        self.name = f"{dataset.name}, moved={metres:g}"
        self.left_out, self.outdoor = dataset.left_out, dataset.outdoor
        self.pairs: list[Pair] = [self._moved(pair) for pair in dataset.pairs]

    def cloud(self, name: str) -> np.ndarray:
        """The shifted points (N, 3) of a cloud."""
        return self._still.cloud(name) + self._offset(name)

    def _offset(self, name: str) -> np.ndarray:
        rng = np.random.default_rng([self.seed, zlib.crc32(os.fsencode(name))])
        direction = rng.standard_normal(3)
        return self.metres * direction / np.linalg.norm(direction)

    def _moved(self, pair: Pair) -> Pair:
        source, target = (translation(self._offset(name)) for name in (pair.source, pair.target))
        T = target @ pair.T_target_source @ inverse(source)
        before = pair.moves or (np.eye(4), np.eye(4))
        return replace(pair, T_target_source=T, moves=(source @ before[0], target @ before[1]))


class Mixture:
    """All pairs of `own`, mixed with pairs of `replayed` against forgetting.

    Replayed pairs are the fraction `share` of the mixture. They are spread evenly over their list, and
    repeated if it is too short. Raises InputError for a share outside 0 to 1, or if `replayed` has no pairs.
    """

    def __init__(self, own: PairDataset, replayed: PairDataset, share: float):
        if not 0 < share < 1:
            raise InputError(f"replay_share={share:g}: a fraction of the pairs is needed, such as 0.3")
        if not replayed.pairs:
            raise InputError("replay: the data set has no pairs; check replay.*")
        self._own, self._replayed = own, replayed
        count = round(len(own.pairs) * share / (1 - share))
        times, rest = divmod(count, len(replayed.pairs))
        drawn = times * replayed.pairs + evenly(replayed.pairs, rest)
        self.pairs: list[Pair] = own.pairs + [
            replace(pair, source=REPLAYED + pair.source, target=REPLAYED + pair.target) for pair in drawn
        ]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of a cloud of either data set."""
        if name.startswith(REPLAYED):
            return self._replayed.cloud(name.removeprefix(REPLAYED))
        return self._own.cloud(name)


def beam_numbers(points: np.ndarray) -> np.ndarray | None:
    """Beam number (N,) int64, from 0, of each point (N, 3) of a scan.

    The sensor is the origin, z points upwards. In files that are written beam after beam, such as KITTI's,
    each turn of the azimuth is a beam. In others a beam is a peak in the histogram of elevations, smoothed by
    the width that puts most points into peaks; this cannot separate beams closer than 0.2 degrees, and may
    fail on de-skewed scans. Rows of zeros get -1. Returns None if the beams cannot be separated.
    """
    seen = points.any(1)
    x, y, z = points[seen].T
    azimuth = np.degrees(np.arctan2(y, x)) % 360
    elevation = np.degrees(np.arctan2(z, np.hypot(x, y)))
    found = _by_order(azimuth, elevation)
    found = _by_elevation(elevation) if found is None else found
    if found is None:
        return None
    numbers = np.full(len(points), -1)
    numbers[seen] = found
    return numbers


def _by_order(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray | None:
    """Turn of the azimuth (N,) of each point; None if not ordered beam after beam."""
    if len(azimuth) < 2:
        return None
    steps = np.diff([azimuth, elevation])
    if (np.median(np.abs(steps), 1) >= MAX_STEP_DEGREES).any():
        return None
    begins = np.sign(np.median(steps[0])) * steps[0] < -180  # the median says which way the sensor spins
    return np.concatenate([[0], np.cumsum(begins)]) if begins.any() else None


def _by_elevation(elevation: np.ndarray) -> np.ndarray | None:
    """Histogram peak (N,) of each elevation (N,) in degrees; None without clear peaks."""
    counts, edges = np.histogram(elevation, np.arange(-90 - BIN_DEGREES, 90 + 2 * BIN_DEGREES, BIN_DEGREES))
    most, valleys = 0.0, None
    for width in SIGMAS_DEGREES:
        density = gaussian_filter1d(counts.astype(float), width / BIN_DEGREES)
        high = np.percentile(density[density > 0.01], 90) if len(elevation) else 0.0
        # Standard deviation of smoothed Poisson counts
        chance = np.sqrt(high * BIN_DEGREES / (2 * np.sqrt(np.pi) * width))
        least = max(MIN_PROMINENCE * high, MIN_DEVIATIONS * chance, 1e-9)
        peaks, found = find_peaks(density, prominence=least)
        area = found["prominences"].sum() * np.sqrt(2 * np.pi) * width / BIN_DEGREES
        in_peaks = area / max(len(elevation), 1)
        if in_peaks > most:
            lowest = [a + density[a:b].argmin() for a, b in pairwise(peaks)]
            most, valleys = in_peaks, edges[np.array(lowest, dtype=int)] + BIN_DEGREES / 2
    return np.searchsorted(valleys, elevation) if most >= MIN_PEAK_FRACTION else None
