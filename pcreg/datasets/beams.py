"""Beams of a spinning LiDAR: the one by which each point of a scan was seen.

Some files are written one beam after another, as KITTI's are: there each turn of the azimuth is a beam. In
any other order a beam is a peak in the histogram of elevations, and valleys separate beams. The histogram is
smoothed by the width that puts most points into peaks: so little that neighbouring beams do not merge, and so
much that the noise of one beam makes one peak. Beams closer than 0.2 degrees are not separated in this way,
nor are those of a scan that was undistorted after quick turns of the sensor.
"""

from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.signal import find_peaks

BIN_DEGREES = 0.02  # of the histogram
SIGMAS_DEGREES = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3)  # that are tried
MIN_PROMINENCE = 0.15  # of a peak, as a fraction of the high ones
MIN_DEVIATIONS = 4.0  # and in standard deviations of what chance makes of as many points
# Fraction of the points in peaks: of a de-skewed scan of 64 beams 0.15, of raw scans 0.5 and more.
MIN_PEAK_FRACTION = 0.12
MAX_STEP_DEGREES = 1.0, 0.1  # median of azimuth and elevation from one point of a beam to the next


def beam_numbers(points: np.ndarray) -> np.ndarray | None:
    """Beam (N,) int64, from 0, of each point (N, 3) of a scan whose origin is the sensor, z upwards.

    Beams are numbered in the order of the file or from the lowest up; a row of zeros is of none, -1. Returns
    None if the beams cannot be separated.
    """
    seen = points.any(1)
    x, y, z = points[seen].T
    azimuth = np.degrees(np.arctan2(y, x)) % 360
    elevation = np.degrees(np.arctan2(z, np.hypot(x, y)))
    found = _by_order(azimuth, elevation)
    if found is None:
        found = _by_elevation(elevation)
    if found is None:
        return None
    numbers = np.full(len(points), -1)
    numbers[seen] = found
    return numbers


def _by_order(azimuth: np.ndarray, elevation: np.ndarray) -> np.ndarray | None:
    """Turn (N,) of the sensor in which each point was seen, if the file is written beam after beam."""
    steps = np.diff(azimuth), np.diff(elevation)
    if len(azimuth) < 2 or any(
        np.median(np.abs(step)) >= most for step, most in zip(steps, MAX_STEP_DEGREES, strict=True)
    ):
        return None
    begins = np.sign(np.median(steps[0])) * steps[0] < -180  # the median says which way the sensor spins
    return np.concatenate([[0], np.cumsum(begins)]) if begins.any() else None


def _by_elevation(elevation: np.ndarray) -> np.ndarray | None:
    """Peak (N,) of the histogram of elevations (N,), degrees, in which each lies."""
    counts, edges = np.histogram(elevation, np.arange(-90 - BIN_DEGREES, 90 + 2 * BIN_DEGREES, BIN_DEGREES))
    most, valleys = 0.0, None
    for width in SIGMAS_DEGREES:
        density = gaussian_filter1d(counts.astype(float), width / BIN_DEGREES)
        high = np.percentile(density[density > 0.01], 90) if len(elevation) else 0.0
        # The deviation of smoothed Poisson counts
        chance = np.sqrt(high * BIN_DEGREES / (2 * np.sqrt(np.pi) * width))
        least = max(MIN_PROMINENCE * high, MIN_DEVIATIONS * chance, 1e-9)
        peaks, found = find_peaks(density, prominence=least)
        area = found["prominences"].sum() * np.sqrt(2 * np.pi) * width / BIN_DEGREES
        in_peaks = area / max(len(elevation), 1)
        if in_peaks > most:
            lowest = [a + density[a:b].argmin() for a, b in pairwise(peaks)]
            most, valleys = in_peaks, edges[np.array(lowest, dtype=int)] + BIN_DEGREES / 2
    return np.searchsorted(valleys, elevation) if most >= MIN_PEAK_FRACTION else None
