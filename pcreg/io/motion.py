"""Motions and poses in files."""

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.geometry.se3 import MAX_DEVIATION, rigid, rigid_motion, se3
from pcreg.io.formats.text import open_text
from pcreg.runtime.errors import InputError, refusing


def read_motion(path: str | Path) -> np.ndarray:
    """Read a rigid motion (4, 4) float64; InputError, with the path, for a file without one.

    A .npy file or a text holds the 16 numbers of the matrix or the 12 of its upper rows, row by row, or
    `time tx ty tz qx qy qz qw` (TUM). Text may have brackets, commas, and comments after `#`. The output of
    `pcreg register` and its result.json are read, too.
    """
    file_path = Path(os.path.expanduser(path))
    try:
        if file_path.suffix.lower() == ".npy":
            matrix = np.asarray(np.load(file_path), dtype=np.float64).ravel()
        else:
            with open_text(file_path) as file:
                matrix = _matrix_in(file.read().decode("latin-1"))
    except OSError as error:
        why = (error.strerror or str(error)).lower()  # such as no such file or directory
        raise InputError(f"{path}: cannot be read ({why}); name a file with a transform") from error
    except KeyError as error:
        raise InputError(f"{path}: holds no T_target_source; name a result.json of pcreg register") from error
    except (ValueError, TypeError, EOFError) as error:  # an unusable .npy raises any of these
        raise InputError(f"{path}: cannot be read as a transform; write 4 lines of 4 numbers") from error
    if isinstance(matrix, np.ndarray):
        if len(matrix) == 8:
            with refusing(f"{path}: {{error}}; write `time tx ty tz qx qy qz qw` (TUM)", ValueError):
                return _pose(matrix, 1)
        if len(matrix) not in (12, 16):
            raise InputError(f"{path}: holds {len(matrix)} numbers; write 4 lines of 4, or 3 of 4")
        matrix = matrix.reshape(-1, 4)
    return rigid_motion(matrix, str(path))


def _matrix_in(text: str) -> Any:
    """Numbers (N,) of a text, or the value of T_target_source if the text is a result.json."""
    if printed := re.search(r"T_target_source =\s*(\[\[.*?\]\])", text, re.DOTALL):
        text = printed[1]
    if text.lstrip().startswith("{"):
        return json.loads(text)["T_target_source"]
    return np.array(re.sub(r"#.*|[\[\],]", " ", text).split(), dtype=np.float64)


def read_poses(path: Path) -> np.ndarray:
    """Read poses (F, 4, 4) float64, one per line, which move scans into a common frame.

    A line is the 12 numbers of a 3 x 4 matrix, row by row (KITTI), or `time tx ty tz qx qy qz qw`
    (TUM), whose times must not decrease. `#` starts a comment. Raises InputError for anything else.
    """
    usual = "a line is 12 numbers (KITTI) or `time tx ty tz qx qy qz qw` (TUM)"
    with refusing(f"{path}: cannot be read as poses ({{error}}); {usual}", OSError, ValueError, IndexError):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a file without numbers, which is refused below
            lines = np.loadtxt(path, ndmin=2, encoding="utf-8-sig")
        if lines.size == 0:
            raise ValueError("no line with numbers")
        if lines.shape[1] not in (8, 12):
            raise ValueError(f"{lines.shape[1]} numbers in a line")
        if lines.shape[1] == 8 and (np.diff(lines[:, 0]) < 0).any():
            raise ValueError("its times decrease; put its lines in the order of the scans")
        return np.stack([_pose(line, number) for number, line in enumerate(lines, start=1)])


def _pose(line: np.ndarray, number: int) -> np.ndarray:
    """Pose (4, 4) of the numbers (8,) or (12,) of line `number`; ValueError, with `number`, if not rigid."""
    try:
        if len(line) == 12:
            return rigid(line.reshape(3, 4))
        if not abs(np.linalg.norm(line[4:]) - 1) < MAX_DEVIATION:
            raise ValueError("a quaternion whose length is not 1")
        return rigid(se3(Rotation.from_quat(line[4:]).as_matrix(), line[1:4]))
    except ValueError as error:
        raise ValueError(f"pose {number}: {error}") from error
