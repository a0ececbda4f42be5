"""Prior limits on a motion: verticals of the clouds, or a motion nearby.

A prior narrows the search: matches that no allowed motion brings together are left out, motions that are not
allowed are not tried, and with given verticals two matches determine a motion instead of three. A refined
motion that the prior does not allow is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from textwrap import shorten

import numpy as np
from numpy.typing import ArrayLike

from pcreg.arrays import Array, like, to_host
from pcreg.geometry.se3 import inverse, procrustes, rigid_motion, se3, transform, translation
from pcreg.runtime.errors import InputError

# Degrees between the verticals of both clouds after the motion; levelled sensors are off by 1 or 2
MAX_TILT = 5.0
# Difference of heights, as a fraction of the distance of two matches: verticals may be 2 degrees off
VERTICAL_SLACK = 0.035
SLACK_DEGREES = 5.0  # by which motions may exceed the limits before they are refined

Up = Sequence[float] | np.ndarray  # a direction x, y, z of any length but zero


@dataclass(frozen=True, eq=False)
class Prior:
    """Limits on T_target_source; a prior without limits allows every transform.

    Args:
        gravity: Upward direction in the clouds: True for z in both, a direction x, y, z for both, or a pair
            of directions, of source and target. The transform keeps the direction to 5 degrees.
        near: A transform (4, 4), translation in metres; it needs `within`.
        within: Metres by which the middle of the source may be shifted, and degrees by which the source may
            be rotated, from where `near` puts the source.

    Raises:
        InputError: A direction, transform or limit is invalid, or only one of `near` and `within` is given.
    """

    gravity: "bool | Up | tuple[Up, Up] | None" = None
    near: ArrayLike | None = None
    within: tuple[float, float] | None = None
    _middle: np.ndarray | None = None  # (3,) of the source, metres, set by `about`

    def __post_init__(self) -> None:
        object.__setattr__(self, "gravity", _verticals(self.gravity))
        if (self.near is None) != (self.within is None):
            raise InputError("near and within go together: a transform, and METRES and DEGREES around it")
        if self.within is not None:
            object.__setattr__(self, "near", rigid_motion(self.near, "near"))
            object.__setattr__(self, "within", _limits(self.within))

    @property
    def sample_size(self) -> int:
        """The number of matches that determine a motion."""
        return 3 if self.gravity is None else 2

    def between(self, source: np.ndarray, target: np.ndarray) -> "Prior":
        """The same prior between frames with the same axes and origins at `source` (3,) and `target` (3,)."""
        if self.near is None:
            return self
        near = translation(-target) @ self.near @ translation(source)
        return replace(self, near=near, _middle=None if self._middle is None else self._middle - source)

    def about(self, source: Array) -> "Prior":
        """The same prior with the middle of the source, by its points (N, 3) in the frame of the prior."""
        return self if self.near is None else replace(self, _middle=to_host(source.mean(0)))

    def possible(self, source: np.ndarray, target: np.ndarray, distance: float) -> np.ndarray:
        """True (P,) for matches (P, 3), (P, 3) that an allowed motion may bring within `distance`."""
        if self.near is None:
            return np.ones(len(source), dtype=bool)
        metres, degrees = self.within
        arm = 2 * np.sin(np.radians(min(degrees, 180)) / 2) * np.linalg.norm(source - self._middle, axis=1)
        return np.linalg.norm(transform(self.near, source) - target, axis=1) <= metres + arm + distance

    def reaches(self, box: np.ndarray, radius: float) -> bool:
        """True if an allowed motion may put a source of this radius in metres into a box (2, 3)."""
        if self.near is None:
            return True
        middle = transform(self.near, self._middle)
        return bool(np.linalg.norm(middle - middle.clip(*box)) <= self.within[0] + radius)

    def rises(self, source: Array, target: Array) -> Array | None:
        """Height (P,) of target (P, 3) above source (P, 3), metres, row by row; None without a vertical."""
        if self.gravity is None:
            return None
        up_source, up_target = (like(up, source) for up in self.gravity)
        return target @ up_target - source @ up_source

    def fit(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """`procrustes` of source and target (..., N, 3); given verticals are kept, and N >= 2 suffices."""
        if self.gravity is None:
            return procrustes(source, target)
        levelled = [_level(up) for up in self.gravity]  # rotations (3, 3) that turn up to z
        a, b = (side @ R.T for side, R in zip((source, target), levelled, strict=True))
        share = 1 / a.shape[-2]
        centre, other = (a * share).sum(-2), (b * share).sum(-2)
        a, b = (a - centre[..., None, :]) * share, b - other[..., None, :]
        cosine = (a[..., :2] * b[..., :2]).sum((-1, -2))
        sine = (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]).sum(-1)
        length = np.hypot(cosine, sine)
        defined = length > 0  # else the points are vertical: any rotation fits, and none is taken
        cosine, sine = np.where(defined, cosine, 1.0), np.where(defined, sine, 0.0)
        length = np.where(defined, length, 1.0)
        T = np.zeros((*centre.shape[:-1], 4, 4))
        T[..., 0, 0] = T[..., 1, 1] = cosine / length
        T[..., 1, 0], T[..., 0, 1] = sine / length, -sine / length
        T[..., 2, 2] = T[..., 3, 3] = 1
        T[..., :3, 3] = other - (T[..., :3, :3] @ centre[..., None])[..., 0]
        up_source, up_target = (se3(R, np.zeros(3)) for R in levelled)
        return inverse(up_target) @ T @ up_source

    def allows(self, motions: np.ndarray, distance: float) -> np.ndarray:
        """True (H,) for motions (H, 4, 4) that are allowed, or may be once refined by `distance` metres."""
        tilt, shift, rotation = self._deviations(motions)
        metres, degrees = self.within or (np.inf, np.inf)
        near = (shift <= metres + 2 * distance) & (rotation <= degrees + SLACK_DEGREES)
        return near & (tilt <= MAX_TILT + SLACK_DEGREES)

    def violation(self, T_target_source: np.ndarray) -> str:
        """The reason why a motion (4, 4) violates the prior, in a sentence; empty if it does not."""
        tilt, shift, rotation = (float(each[0]) for each in self._deviations(T_target_source[None]))
        metres, degrees = self.within or (np.inf, np.inf)
        if tilt > MAX_TILT:
            return (
                f"the transform found tilts the source by {tilt:.1f} degrees against the given vertical, "
                f"and {MAX_TILT:g} are allowed"
            )
        if shift > metres or rotation > degrees:
            return (
                f"the transform found is {shift:.2f} m and {rotation:.1f} degrees from the given one; "
                f"{metres:g} m and {degrees:g} degrees are allowed"
            )
        return ""

    def _deviations(self, motions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Degrees between the verticals, and metres and degrees from `near`, each (H,); 0 without a limit."""
        tilt = shift = rotation = np.zeros(len(motions))
        R = motions[:, :3, :3]
        if self.gravity is not None:
            up_source, up_target = self.gravity
            tilt = _degrees(R @ up_source @ up_target)
        if self.near is not None:
            offsets = motions[:, :3] @ np.append(self._middle, 1) - transform(self.near, self._middle)
            shift = np.linalg.norm(offsets, axis=1)
            rotation = _degrees((np.einsum("hij,ij->h", R, self.near[:3, :3]) - 1) / 2)
        return tilt, shift, rotation

    def to_dict(self) -> dict[str, object]:
        """The limits as plain values, for records."""
        return {
            "gravity": None if self.gravity is None else [up.tolist() for up in self.gravity],
            "near": None if self.near is None else self.near.tolist(),
            "within": None if self.within is None else list(self.within),
        }


def _verticals(gravity: "bool | Up | tuple[Up, Up] | None") -> tuple[np.ndarray, np.ndarray] | None:
    """Upward unit vectors (3,) in source and target; None without gravity."""
    if gravity is None or gravity is False:
        return None
    try:
        given = (0, 0, 1) if gravity is True else gravity
        up = np.array([to_host(each) for each in given], dtype=np.float64)
    except (TypeError, ValueError):
        up = np.empty(0)
    if up.shape not in ((3,), (2, 3)) or not np.isfinite(up).all():
        shown = shorten(str(gravity), 60)  # an array in one line
        raise InputError(f"gravity {shown} is not a direction; use True for z, or x, y, z upwards, or two")
    up = np.broadcast_to(up, (2, 3))
    lengths = np.linalg.norm(up, axis=1, keepdims=True)
    if not lengths.all():
        raise InputError("gravity 0, 0, 0 is not a direction; use x, y, z upwards, such as 0, 0, 1")
    return tuple(up / lengths)


def _limits(within: object) -> tuple[float, float]:
    if (
        not isinstance(within, Sequence | np.ndarray)
        or len(within) != 2
        or not all(isinstance(value, Real) and 0 < value < np.inf for value in within)
    ):
        raise InputError(f"within {within}: two positive numbers are needed, METRES and DEGREES")
    return float(within[0]), float(within[1])


def _level(up: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) of the unit vector `up` to z."""
    x = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(up, x), up])


def _degrees(cosine: np.ndarray) -> np.ndarray:
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


ANY = Prior()
