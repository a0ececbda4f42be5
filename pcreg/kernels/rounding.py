"""Coordinates, arrays or tensors, as the network takes them."""

from typing import Any

RESOLUTION = 2**-20  # metres


def rounded(coordinates: Any) -> Any:
    """Round to the micrometre, so that the last digits of a moved cloud do not choose the cell of a point."""
    return (coordinates / RESOLUTION).round() * RESOLUTION
