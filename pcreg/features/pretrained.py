"""The shipped weights, and the voxel sizes to describe clouds at.

A network of ours has no unit of length, so its weights serve at any voxel size. Rooms seen by depth cameras
and streets seen by LiDARs each have a usual one, at which the training saw them.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

WEIGHTS = Path(str(files("pcreg.weights"))) / "fcgf.safetensors"
ROOM_VOXEL, STREET_VOXEL = 0.05, 0.3  # metres
# Metres: a cloud with both or more is a LiDAR scan of a street. With such a voxel but a smaller extent it is
# a room of few points: simulated scans of rooms extend over up to 7 m, most of streets over 19 m and more.
MIN_OUTDOOR_VOXEL, MIN_OUTDOOR_EXTENT = 0.1, 10.0
MAX_VOXEL_RATIO = 3.0  # between a cloud's own voxel size and the usual one


def usual_voxel(voxel: float, extent: float) -> float:
    """The usual voxel size, metres, of clouds of an extent in metres that suit `voxel` by themselves."""
    is_outdoor = voxel >= MIN_OUTDOOR_VOXEL and extent >= MIN_OUTDOOR_EXTENT
    return STREET_VOXEL if is_outdoor else ROOM_VOXEL


def scales(usual: float, sizes: Sequence[float]) -> list[float]:
    """Voxel sizes to try where `usual` is that of the training, for clouds that suit `sizes`, best first.

    First the usual one, if the clouds' own is near it and they are no room of few points, half of which would
    be isolated there. The others are in proportion, but none below half of the finest.
    """
    near = usual / MAX_VOXEL_RATIO <= sizes[0] <= usual * MAX_VOXEL_RATIO
    is_sparse_room = usual < MIN_OUTDOOR_VOXEL <= sizes[0]
    first = usual if near and not is_sparse_room else sizes[0]
    others = [first * (size / sizes[0]) for size in sizes[1:]]
    return [first, *(size for size in others if size >= min(sizes) / 2)]
