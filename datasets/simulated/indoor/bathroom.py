"""Bathroom pieces."""

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import clutter
from pcreg.datasets.simulated.indoor.kitchen import tap
from pcreg.datasets.simulated.indoor.piece import Piece, pose, ring
from pcreg.datasets.simulated.indoor.storage import fronts
from pcreg.datasets.simulated.solids import Solids, balls, boxes, rods


def toilet(rng: np.random.Generator) -> Piece:
    h, long = rng.uniform([0.38, 0.26], [0.45, 0.32])
    parts = [balls([(0, -0.42, h - 0.12, 0.2, long, 0.2), (0, -0.35, 0.12, 0.13, 0.2, 0.25)])]
    parts.append(
        boxes(
            [
                (-0.12, -0.45, 0, 0.12, -0.1, h * 0.6),
                (-0.2, -0.19, h - 0.02, 0.2, -0.02, h + rng.uniform(0.3, 0.42)),
            ]
        )
    )
    seat = ring(0.17, 0, 0.03, 16, 0.06).placed(pose(0, -0.42, h + 0.02) @ np.diag([1, 1.35, 1, 1]))
    lid = balls([(0, 0, 0.22, 0.19, 0.02, 0.24)]).placed(pose(0, -0.2, h + 0.04, 0, 0, rng.choice([-4, 78])))
    return Piece(Solids.join(*parts, seat, lid), [(-0.18, -0.18, 0.18, -0.03, h + 0.4)])


def washbasin(rng: np.random.Generator) -> Piece:
    """A basin on a foot or a cupboard, a mirror above."""
    half, d, h = rng.uniform([0.22, 0.4, 0.8], [0.45, 0.55, 0.9])
    rim = [(-half, -d, h - 0.14, -half + 0.05, 0, h), (half - 0.05, -d, h - 0.14, half, 0, h)]
    rim += [
        (-half, -d, h - 0.14, half, -d + 0.05, h),
        (-half, -0.12, h - 0.14, half, 0, h),
        (-half, -d, h - 0.16, half, 0, h - 0.12),
    ]
    parts = [boxes(rim), tap(rng).placed(pose(0, -0.07, h))]
    if rng.random() < 0.5:
        parts.append(rods([(0.09, 0, -d * 0.4, 0, 0, -d * 0.4, h - 0.1)]))
    else:
        parts += [
            boxes([(-half * 0.9, -d * 0.9, 0.15, half * 0.9, 0, h - 0.14)]),
            fronts(rng, -half * 0.9, half * 0.9, -d * 0.9, 0.17, h - 0.16, 2, 1),
        ]
    parts.append(boxes([(-half * 0.8, -0.03, h + 0.25, half * 0.8, 0, h + rng.uniform(0.7, 1.1))]))
    for x in (-half + 0.08, half - 0.08):
        parts.append(clutter(rng, 0.15).placed(pose(x, -0.06, h)))
    return Piece(Solids.join(*parts))


def bath(rng: np.random.Generator) -> Piece:
    half, d, h = rng.uniform([0.75, 0.65, 0.5], [0.9, 0.8, 0.62])
    t = rng.uniform(0.05, 0.1)
    rows = [
        (-half, -d, 0, half, -d + t, h),
        (-half, -t, 0, half, 0, h),
        (-half, -d, 0, -half + t, 0, h),
        (half - t, -d, 0, half, 0, h),
        (-half, -d, 0, half, 0, 0.15),
    ]
    parts = [boxes(rows), tap(rng).placed(pose(-half + 0.06, -d / 2, h, -90))]
    parts += [
        rods([(0.012, -half + 0.05, -0.05, h + 0.3, -half + 0.05, -0.05, 2.0)]),
        balls([(-half + 0.12, -0.1, 2.0, 0.07, 0.07, 0.03)]),
    ]
    return Piece(Solids.join(*parts), [(-half, -t, half, 0, h)])


def towel_rail(rng: np.random.Generator) -> Piece:
    half, z = rng.uniform([0.2, 1.0], [0.35, 1.5])
    bars = [(0.01, -half, -0.07, a, half, -0.07, a) for a in z + np.arange(rng.integers(1, 7)) * 0.08]
    towel = boxes(
        [(-half * 0.7, -0.1, z - rng.uniform(0.3, 0.6), half * rng.uniform(0, 0.9), -0.05, z + 0.02)]
    )
    return Piece(Solids.join(rods(bars), towel.uneven(0.012)))
