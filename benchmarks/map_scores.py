"""Maps held against the poses of a benchmark: which scans are placed, and which pairs are wrong."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.mapping.map import Map, MapEdge

PLACED = 0.2, 5.0  # metres, degrees
WRONG = 0.3, 15.0


def rows(found: Map, paths: Sequence[Path], seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each map, and for the scans that belong to none."""
    poses = np.array([np.loadtxt(path.with_suffix(".info.txt"), skiprows=1) for path in paths])
    for number in range(1, found.count + 1):
        members = found.scans(number)
        errors = _errors(found.T_map_scan[members], poses[members])
        own = [edge for edge in found.edges if edge.used and edge.source in members]
        wrong = [edge for edge in own if _is_wrong(edge, paths, poses)]
        yield {
            "map": number,
            "scans": len(members),
            "placed": int((errors < PLACED).all(1).sum()),
            "median m": float(np.median(errors[:, 0])),
            "median deg": float(np.median(errors[:, 1])),
            "pairs used": len(own),
            "wrong": len(wrong),
            "tried, all": len(found.edges),
            "s": seconds,
            "of": " ".join(
                f"{n} {scene}" for scene, n in Counter(paths[row].parent.name for row in members).items()
            ),
        }
    yield {"map": "none", "scans": len(found.alone)}


def _errors(T_map_scan: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Metres and degrees (n, 2) from the poses, the map laid on that scan by which most are placed."""
    candidates = [
        np.array(
            [
                _off(T, T_map_scan[first] @ inverse(poses[first]) @ pose)
                for T, pose in zip(T_map_scan, poses, strict=True)
            ]
        )
        for first in range(len(poses))
    ]
    return max(candidates, key=lambda errors: ((errors < PLACED).all(1).sum(), -np.median(errors[:, 0])))


def _is_wrong(edge: MapEdge, paths: Sequence[Path], poses: np.ndarray) -> bool:
    if paths[edge.source].parent != paths[edge.target].parent or edge.T_target_source is None:
        return True
    true = inverse(poses[edge.target]) @ poses[edge.source]
    return any(np.greater(_off(edge.T_target_source, true), WRONG))


def _off(T: np.ndarray, true: np.ndarray) -> tuple[float, float]:
    return translation_error(T, true), rotation_error(T, true)
