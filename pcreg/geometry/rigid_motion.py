"""A matrix that a caller gives for a motion, checked to be one."""

import numpy as np

from pcreg.geometry.se3 import se3
from pcreg.runtime.errors import InputError

# Of an entry of the rotation from that of the nearest one: text with three decimals is within half of it
MAX_DEVIATION = 1e-3


def rigid_motion(matrix: object, name: str) -> np.ndarray:
    """The rigid motion (4, 4) float64 nearest to a matrix (4, 4), or to its upper rows (3, 4).

    Raises InputError, which calls it by `name`, unless it is rigid up to the rounding of printed text.
    """
    try:
        T = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: is no array of numbers; pass a motion (4, 4)") from error
    if T.shape not in ((4, 4), (3, 4)) or not np.isfinite(T).all():
        raise InputError(f"{name}: shape {T.shape} or numbers not finite; pass a rigid motion (4, 4)")
    if len(T) == 4 and np.abs(T[3] - (0, 0, 0, 1)).max() > MAX_DEVIATION:
        raise InputError(f"{name}: the last row is not 0 0 0 1; transpose it if the last column is")
    U, stretch, Vt = np.linalg.svd(T[:3, :3])
    R = U @ Vt
    if np.abs(T[:3, :3] - R).max() > MAX_DEVIATION:
        raise InputError(
            f"{name}: is not rigid, as it stretches by {stretch.min():.4g} to {stretch.max():.4g}; pass a "
            "rotation and a translation in metres, with four decimals or more"
        )
    if np.linalg.det(R) < 0:
        raise InputError(f"{name}: is a mirror image, no rotation; change the sign of an axis")
    return se3(R, T[:3, 3])
