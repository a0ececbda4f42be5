"""Register two scans from a guess, and say whether the result is to be believed.

Generalised ICP (Segal et al., RSS 2009) by small_gicp, in one thread, so that it repeats. It always
returns a motion; how the scans lie on each other afterwards tells a right one from a wrong one.
"""

from dataclasses import dataclass

import numpy as np

from pcreg.evaluation.metrics import rmse
from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.se3 import inverse, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.registration.free_space import View, free_space_violation
from pcreg.runtime.errors import InputError

REACH = 6.0  # voxels: partners up to this far apart forgive a rough start
SETTLE = 3.0  # voxels: partners up to this far apart give the result
ITERATIONS = 50
MINIMUM_POINTS = 100  # of a thinned scan

# Two LiDAR sequences, 950 registrations from starts up to 6 m and 180 degrees off. Of those that overlapped
# by LEAST_OVERLAP the 650 right ones, within 0.3 m and 1.5 degrees, had a free-space violation of 0.065 at
# most, the 81 wrong ones of 0.128 at least.
LEAST_OVERLAP = 0.3
MAX_FREE_SPACE_VIOLATION = 0.09
FREE = 3.0  # voxels: what stands further in front of a surface is not part of it


@dataclass(frozen=True)
class Fit:
    """How two scans lie on each other after their registration."""

    T_target_source: np.ndarray  # (4, 4) float64
    overlap: float  # fraction of the source, one point per voxel, with a target point within 1.5 voxels
    # Fraction of one scan that stands where the other's sensor looked through; the larger
    free_space_violation: float
    moved: float  # metres between the guess and the result, RMS over the source points

    def doubt(self, least_overlap: float = LEAST_OVERLAP, most_moved: float = np.inf) -> str:
        """Why the motion cannot be used, in a few words; '' if nothing speaks against it."""
        if self.free_space_violation > MAX_FREE_SPACE_VIOLATION:
            return "contradict what the sensors saw"
        if self.moved > most_moved:
            return f"moved by more than {most_moved:g} m"
        if self.overlap < least_overlap:
            return f"overlap by less than {least_overlap:g}"
        return ""


class Scan:
    """A scan (N, 3) prepared for registration at a voxel size; its sensor stands at the origin."""

    def __init__(self, points: np.ndarray, voxel: float, name: str = "scan"):
        self.voxel = voxel
        self.points = points[voxel_downsample(points, voxel)]
        if len(self.points) < MINIMUM_POINTS:
            raise InputError(
                f"{name}: {len(self.points)} points are left at voxel {voxel:g} m and odometry needs "
                f"{MINIMUM_POINTS}; take the scan out of the folder, or try a smaller data.voxel"
            )
        self.cloud, self.tree = small_gicp().preprocess_points(points, downsampling_resolution=voxel)


def register(source: Scan, target: Scan, guess: np.ndarray) -> Fit:
    """Register source to target from the motion `guess` (4, 4)."""
    voxel, T = source.voxel, guess
    for reach in (REACH * voxel, SETTLE * voxel):
        T = (
            small_gicp()
            .align(
                target.cloud,
                source.cloud,
                target.tree,
                init_T_target_source=T,
                max_correspondence_distance=reach,
                max_iterations=ITERATIONS,
            )
            .T_target_source
        )
    moved, back = transform(T, source.points), transform(inverse(T), target.points)
    free = FREE * voxel
    return Fit(
        T,
        overlap=measured_overlap(source.points, target.points, T, OVERLAP_DISTANCE * voxel),
        free_space_violation=max(
            free_space_violation(moved, View.of(target.points), free),
            free_space_violation(back, View.of(source.points), free),
        ),
        moved=rmse(T, guess, source.points),
    )


def small_gicp():
    """The package; InputError, with the command that installs it, where it is missing."""
    try:
        import small_gicp
    except ImportError as error:
        raise InputError(
            "scans without poses need small_gicp; install it: .venv/bin/pip install '.[odometry]', "
            "or write poses.txt as docs/own_data.md says"
        ) from error
    return small_gicp
