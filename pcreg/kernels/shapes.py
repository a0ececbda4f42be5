"""The unit shapes that solids are made of."""

from enum import IntEnum

MIN_DISTANCE = 1e-3  # metres: a ray does not meet the surface on which it starts


class Shape(IntEnum):
    """Where a point (x, y, z) of the unit shape may be."""

    BOX = 0  # |x|, |y|, |z| <= 1
    BALL = 1  # x^2 + y^2 + z^2 <= 1
    ROD = 2  # x^2 + y^2 <= 1, |z| <= 1
    CONE = 3  # x^2 + y^2 <= ((1 - z) / 2)^2, |z| <= 1: its tip at z = 1
