"""Motions in files."""

import json
import re
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import rigid_motion
from pcreg.io.cloud import expanded
from pcreg.runtime.errors import InputError


def read_motion(path: str | Path) -> np.ndarray:
    """Read a rigid motion (4, 4) float64; InputError, with the path, for a file without one.

    Text holds the 16 numbers of the matrix, or the 12 of its upper rows, row by row; brackets, commas and
    comments after `#` are allowed. A result.json of `pcreg register` is read, too.
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
