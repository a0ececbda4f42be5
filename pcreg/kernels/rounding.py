"""Coordinates, arrays or tensors, as the network takes them."""

from typing import Any

RESOLUTION = 2**-20  # metres


def rounded(coordinates: Any) -> Any:
    """To the micrometre: measurements are multiples of a millimetre, and what moving a cloud leaves in the
    last digits must not decide on which side of a cell's border a point lies.
    """
    return (coordinates / RESOLUTION).round() * RESOLUTION
