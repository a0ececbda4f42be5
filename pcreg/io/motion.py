"""Motions that come from elsewhere: in files and from callers, checked to be rigid."""

import json
import re
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import se3
from pcreg.io.cloud import expanded
from pcreg.runtime.errors import InputError

# Of an entry of the rotation from that of the nearest one: text with three decimals is within half of it
MAX_DEVIATION = 1e-3


def read_motion(path: str | Path) -> np.ndarray:
    """The rigid motion (4, 4) float64 in a file, which is not checked for its direction.

    Text holds the 16 numbers of the matrix, or the 12 of its upper rows, row by row; brackets, commas and
    comments after `#` are allowed, so that what `pcreg register` prints can be pasted. A result.json of
    `pcreg register` is read, too. Raises InputError, which names the file.
    """
    try:
        text = expanded(path).read_text(encoding="utf-8")
        if text.lstrip().startswith("{"):
            matrix = json.loads(text)["T_target_source"]
        else:
            words = re.sub(r"#.*|[\[\],]", " ", text).split()
            matrix = np.array([float(word) for word in words])
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; name one that holds a motion") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a file with a motion") from error
    except KeyError as error:
        raise InputError(f"{path}: holds no T_target_source; name a result.json of pcreg register") from error
    except ValueError as error:
        raise InputError(f"{path}: cannot be read as a motion; write 4 lines of 4 numbers") from error
    if isinstance(matrix, np.ndarray):
        if len(matrix) not in (12, 16):
            raise InputError(f"{path}: holds {len(matrix)} numbers; write 4 lines of 4, or 3 of 4")
        matrix = matrix.reshape(-1, 4)
    return rigid_motion(matrix, str(path))


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
