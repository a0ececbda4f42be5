"""Range images from where a sensor may have stood."""

from typing import NamedTuple


class OcclusionLimits(NamedTuple):
    """What counts as hidden, and as seen edge-on."""

    cells: int  # of the range image, to a side of each of the six faces of a cube
    margin: float  # metres behind a surface, from which on a point is hidden
    width: float  # radians, from the middle of a cell to the far edge of the next
    min_cosine: float  # of the angle between normal and ray; below it a surface is seen edge-on
