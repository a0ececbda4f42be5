"""Range images: how far one sees in each direction, from where a sensor stood or may have stood."""

from typing import NamedTuple

from torch import Tensor

COUNTS = 4  # of pcreg.kernels.free_space.look


class Grid(NamedTuple):
    """The cells of a range image: of equal angles, about the horizon and the axis x."""

    rows: int  # from the lowest
    columns: int
    radians: float  # the edge of a cell


class Views(NamedTuple):
    """Of V places where a sensor stood, how far it saw in each direction."""

    origins: Tensor  # (V, 3) float64, metres
    ranges: Tensor  # (V, rows columns) float64, metres, by cells; infinity where nothing was seen
    grid: Grid


class OcclusionLimits(NamedTuple):
    """What counts as hidden, and as seen edge-on."""

    cells: int  # of the range image, to a side of each of the six faces of a cube
    margin: float  # metres behind a surface, from which on a point is hidden
    width: float  # radians, from the middle of a cell to the far edge of the next
    min_cosine: float  # of the angle between normal and ray; below it a surface is seen edge-on
