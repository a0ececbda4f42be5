"""The map of many scans: their poses, and the pairs on which these rest."""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pcreg.geometry.se3 import transform
from pcreg.registration.batch import DESCRIPTIONS, PAIRS, TABLE
from pcreg.registration.clouds.inputs import Points, points_of
from pcreg.registration.strategy.prepared_map import COLORED, VIEWED
from pcreg.runtime.files import replacing, write_text

GRAPH = "graph.json"
_FURTHER = r"map_\d+"  # name of the folder of a map that is not the first
_DESCRIBED = rf"\b{DESCRIPTIONS}/(keypoints\.bin|screened\.json|\w+/[0-9a-f]{{24}}\.npz)$"
FILES = "poses.txt", "poses_kitti.txt", COLORED, VIEWED, "overview.png", "viewer.html"  # of each map


@dataclass(frozen=True)
class MapEdge:
    """A pair that was tried."""

    source: int  # rows of the scans
    target: int
    registered: bool
    confidence: float
    reason: str  # of the verdict
    used: bool
    unused_because: str  # empty if it is used
    T_target_source: np.ndarray | None  # (4, 4), None without an answer


@dataclass(frozen=True, eq=False)
class Map:
    """Scans in the frames of their maps; a map has the frame of its first scan.

    Scans that no used edge joins are in different maps, the largest map first.

    Attributes:
        names: Names of the n scans.
        errors: Why a scan cannot be used, for each; empty if it can.
        T_map_scan: (n, 4, 4), moves a scan into its map, metres; to be ignored for a scan without a map.
        number: (n,) int64, map of each scan, from 1; 0 of a scan without a map.
        edges: Pairs that were tried, each with its verdict and whether it is used.
        voxel: The voxel size at which scans are compared, metres.
        units: Units in which the scans were given.
    """

    names: tuple[str, ...]
    errors: tuple[str, ...]
    T_map_scan: np.ndarray
    number: np.ndarray
    edges: tuple[MapEdge, ...]
    voxel: float
    units: str = "m"

    @property
    def count(self) -> int:
        """Number of maps of two scans or more."""
        return int(self.number.max(initial=0))

    def scans(self, number: int = 1) -> list[int]:
        """The rows of the scans of a map, by its number."""
        return np.flatnonzero(self.number == number).tolist()

    @property
    def alone(self) -> list[int]:
        """The rows of the scans that can be used and belong to no map."""
        return [row for row, error in enumerate(self.errors) if not error and not self.number[row]]

    def __repr__(self) -> str:
        """The maps in a line."""
        parts = [f"{len(self.scans(number))} in map {number}" for number in range(1, self.count + 1)]
        parts.append(f"{len(self.alone)} alone")
        if any(self.errors):
            parts.append(f"{sum(map(bool, self.errors))} unusable")
        return f"<Map of {len(self.names)} scans: {', '.join(parts)}>"

    def why_alone(self, row: int) -> str:
        """The reason why a usable scan is in no map, with its likeliest pair; empty for others."""
        if self.errors[row] or self.number[row]:
            return ""
        tried = [edge for edge in self.edges if row in (edge.source, edge.target)]
        if not tried:
            return "no matches agree with another scan"
        best = max(tried, key=lambda edge: edge.confidence)
        other = self.names[best.source + best.target - row]
        reason = best.unused_because if best.registered else best.reason
        return f"fits no other scan; likeliest is {other}, confidence {best.confidence:.2f}: {reason}"

    def transform(
        self, row: int, points: Points, units: str | None = None, columns: int | None = None
    ) -> np.ndarray:
        """Move points of a scan into the frame of its map: (N, 3), metres, as `Registration.transform`."""
        return transform(self.T_map_scan[row], points_of(points, "points", units or self.units, columns))

    @property
    def is_whole(self) -> bool:
        """True if all scans are in one map."""
        return bool((self.number == 1).all())

    def to_dict(self) -> dict[str, Any]:
        """Scans and edges as plain values, for JSON."""
        return {
            "voxel": self.voxel,
            "maps": self.count,
            "working_folder": os.getcwd(),  # from which the names of the scans are seen
            "scans": [
                {
                    "name": name,
                    "map": int(self.number[row]) or None,
                    "T_map_scan": self.T_map_scan[row].tolist() if self.number[row] else None,
                    "error": self.errors[row],
                    "alone_because": self.why_alone(row),
                }
                for row, name in enumerate(self.names)
            ],
            "edges": [
                vars(edge)
                | {
                    "source": self.names[edge.source],
                    "target": self.names[edge.target],
                    "T_target_source": None if (T := edge.T_target_source) is None else T.tolist(),
                }
                for edge in self.edges
            ],
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write graph.json, and poses.txt and poses_kitti.txt of each map.

        A line of poses.txt is `row tx ty tz qx qy qz qw` (TUM), and comments name the scans; a line of
        poses_kitti.txt has the 12 numbers of the upper rows of T_map_scan.

        Args:
            folder: of the first map; others go into map_2, map_3, ... in it.

        Returns:
            The paths of the files.

        Raises:
            InputError: a file cannot be written.
        """
        folder = Path(os.path.expanduser(folder))
        paths = [folder / GRAPH]
        again = paths[0].is_file()
        write_text(paths[0], json.dumps(self.to_dict(), indent=1) + "\n")
        for number in range(1, self.count + 1):
            rows, own = self.scans(number), folder_of(folder, number)
            T, names = self.T_map_scan[rows], "".join(f"# {row} {self.names[row]}\n" for row in rows)
            quaternions = Rotation.from_matrix(T[:, :3, :3]).as_quat(canonical=True)
            tum = names, np.column_stack([rows, T[:, :3, 3], quaternions]), ["%d"] + 7 * ["%.12f"]
            kitti = "", T[:, :3].reshape(-1, 12), "%.12f"
            for name, (head, values, form) in (("poses.txt", tum), ("poses_kitti.txt", kitti)):
                paths.append(own / name)
                with replacing(paths[-1]) as temporary, temporary.open("wb") as file:
                    file.write(head.encode(errors="surrogateescape"))
                    np.savetxt(file, values, form)
        if again:
            _remove_from(folder, self.count + 1)
        return paths


def _remove_from(folder: Path, number: int) -> None:
    """Remove the files of maps of an earlier run, from this number on, and folders that are then empty."""
    while (place := folder_of(folder, number)).is_dir():
        if number > 1 and (place / GRAPH).exists():  # the folder of another run
            break
        for name in FILES:
            (place / name).unlink(missing_ok=True)
        with suppress(OSError):  # it has other files
            place.rmdir()
        number += 1


def is_map(folder: Path) -> bool:
    """True for the folder of a map."""
    return os.path.isfile(folder / GRAPH)  # Path.is_file raises without permission to search the folder


def is_of_run(path: str | Path) -> bool:
    """True for a file that a map or a batch wrote, even one that was stopped: such a file is no scan."""
    name, folder = Path(path).name, Path(path).parent
    if name == PAIRS or re.search(_DESCRIBED, Path(path).as_posix()):
        return True
    if re.fullmatch(_FURTHER, folder.name) and not is_map(folder):
        folder = folder.parent
    return (name in (*FILES, GRAPH) and is_map(folder)) or (name == TABLE and os.path.isfile(folder / PAIRS))


def folder_of(folder: Path, number: int) -> Path:
    """The folder of the files of a map."""
    return folder if number == 1 else folder / f"map_{number}"


def files_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Files that a map may have in a folder and in its map_2, ..., and existing ones of other origin."""
    further = [each for each in folder.glob("map_*") if re.fullmatch(_FURTHER, each.name)]
    others = [each for each in further if is_map(each)] if is_map(folder) else [folder, *further]
    written, of_others = (
        [place / name for place in places for name in FILES] for places in ([folder, *further], others)
    )
    return written, [file for file in of_others if os.path.exists(file)]
