"""Registration of a moving sensor's scan to a neighbouring scan, from a guess.

Generalised ICP (Segal et al., RSS 2009) of small_gicp runs in one thread, so that it repeats. It always
returns a motion; the overlap and the free space of the registered scans separate right from wrong motions.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.se3 import inverse, rms_displacement, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.registration.judge.free_space import RangeImage, free_space_violation
from pcreg.runtime.errors import InputError
from pcreg.runtime.extras import require

# Of GICP, in voxels: the first allows for a rough guess, the second gives the result
CORRESPONDENCE_DISTANCES = (6.0, 3.0)
MAX_ITERATIONS = 50
MIN_POINTS = 100  # of a downsampled scan
FREE_SPACE_MARGIN = 3.0  # voxels by which a point stands in front of a surface to count as a violation

# On two LiDAR sequences, 950 registrations from guesses up to 6 m and 180 degrees off: of those that overlap
# by MIN_OVERLAP the 650 right ones, within 0.3 m and 1.5 degrees, have a free-space violation up to 0.065,
# the 81 wrong ones from 0.128 on.
MIN_OVERLAP = 0.3
MAX_FREE_SPACE_VIOLATION = 0.09


@dataclass(frozen=True)
class Fit:
    """A registration of two scans."""

    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of the source, one point per voxel, with a target point within 1.5 voxels
    # Fraction of one scan in space that the other's sensor saw as free; the larger of both
    free_space_violation: float
    correction: float  # metres between the guess and the result, RMS over the source points

    def rejection(self, min_overlap: float = MIN_OVERLAP, max_correction: float = np.inf) -> str:
        """The reason to reject the motion, in a few words; '' to accept it."""
        if self.free_space_violation > MAX_FREE_SPACE_VIOLATION:
            return "contradict what the sensors saw"
        if self.correction > max_correction:
            return f"moved by more than {max_correction:g} m"
        if self.overlap < min_overlap:
            return f"overlap by less than {min_overlap:g}"
        return ""


class Scan:
    """A scan (N, 3) prepared for registration at a voxel size; its sensor stands at the origin."""

    def __init__(self, points: np.ndarray, voxel: float, name: str = "scan"):
        self.voxel = voxel
        self.points = points[voxel_downsample(points, voxel)]
        if len(self.points) < MIN_POINTS:
            raise InputError(
                f"{name}: {len(self.points)} points are left at voxel {voxel:g} m and odometry needs "
                f"{MIN_POINTS}; take the scan out of the folder, or try a smaller data.voxel"
            )
        self.cloud, self.tree = small_gicp().preprocess_points(points, downsampling_resolution=voxel)


def register_scans(source: Scan, target: Scan, guess: np.ndarray) -> Fit:
    """Register source to target from the motion `guess` (4, 4)."""
    voxel, T, clouds = source.voxel, guess, (target.cloud, source.cloud, target.tree)
    for distance in CORRESPONDENCE_DISTANCES:
        found = small_gicp().align(
            *clouds,
            init_T_target_source=T,
            max_correspondence_distance=distance * voxel,
            max_iterations=MAX_ITERATIONS,
        )
        T = found.T_target_source
    moved, back = transform(T, source.points), transform(inverse(T), target.points)
    free = FREE_SPACE_MARGIN * voxel
    return Fit(
        T,
        overlap=measured_overlap(source.points, target.points, T, OVERLAP_DISTANCE * voxel),
        free_space_violation=max(
            free_space_violation(moved, [RangeImage.of(target.points)], free),
            free_space_violation(back, [RangeImage.of(source.points)], free),
        ),
        correction=rms_displacement(source.points, T, guess),
    )


def register_from(source: Scan, target: Scan, *guesses: np.ndarray) -> Fit:
    """The fit of the first guess (4, 4) that is accepted, else the one that overlaps most."""
    fits: list[Fit] = []
    for guess in guesses:
        fits.append(register_scans(source, target, guess))
        if not fits[-1].rejection():
            return fits[-1]
    return max(fits, key=lambda fit: fit.overlap)


def small_gicp():
    """Import small_gicp; InputError, with the command that installs it, if it is missing."""
    require("odometry", "the odometry of scans without poses.txt")
    import small_gicp

    return small_gicp
