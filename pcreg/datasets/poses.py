"""Poses of scans on disk: KITTI or TUM lines, checked to be rigid motions."""

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.geometry.se3 import se3
from pcreg.runtime.errors import InputError

# Of the entries of R R^T from the identity. Rotations of the published pair lists of 3DMatch, products of
# many small ones, are off by up to 1.4e-3.
MAX_DEVIATION = 5e-3


def read_poses(path: Path) -> np.ndarray:
    """Poses (F, 4, 4) float64, one per line, each taking its scan into a frame common to all.

    A line is the 12 numbers of a 3 x 4 matrix, row by row (KITTI), or `time tx ty tz qx qy qz qw`
    (TUM); the time is not used. `#` starts a comment. Raises InputError for anything else.
    """
    try:
        lines = np.loadtxt(path, ndmin=2)
        if lines.size == 0:
            raise ValueError("no line with numbers")
        if lines.shape[1] == 12:
            return np.stack([rigid(line.reshape(3, 4)) for line in lines])
        if lines.shape[1] == 8:
            rotations = Rotation.from_quat(lines[:, 4:]).as_matrix()
            return np.stack([rigid(se3(R, t)) for R, t in zip(rotations, lines[:, 1:4], strict=True)])
        raise ValueError(f"{lines.shape[1]} numbers in a line")
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: cannot be read as poses ({error}); a line is 12 numbers (KITTI) "
            "or `time tx ty tz qx qy qz qw` (TUM)"
        ) from error


def rigid(matrix: np.ndarray) -> np.ndarray:
    """The motion (4, 4) whose upper rows are matrix (3 or 4, 4); ValueError unless it is rigid."""
    R = matrix[:3, :3]
    whole = len(matrix) == 3 or np.allclose(matrix[3], (0, 0, 0, 1))
    # written so that NaN is refused too
    if not (whole and np.isfinite(matrix).all() and np.allclose(R @ R.T, np.eye(3), atol=MAX_DEVIATION)):
        raise ValueError("not a rotation and a translation")
    if np.linalg.det(R) < 0:
        raise ValueError("a mirror image, not a rotation")
    return se3(R, matrix[:3, 3])
