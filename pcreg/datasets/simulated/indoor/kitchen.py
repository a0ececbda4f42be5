"""Kitchen and bathroom pieces: worktops, ovens, basins, baths."""

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import clutter
from pcreg.datasets.simulated.indoor.piece import Piece, between, one_of, pose, ring
from pcreg.datasets.simulated.indoor.storage import fronts
from pcreg.datasets.simulated.solids import Solids, balls, boxes, poles, rods


def counter(rng: np.random.Generator) -> Piece:
    """A worktop over cupboards: with a sink, a hob and an oven, or neither; often cupboards above."""
    half, d, h = between(rng, [0.3, 0.55, 0.85], [1.2, 0.68, 0.95])
    columns = max(1, round(2 * half / 0.55))
    parts = [fronts(rng, -half, half, -d + 0.04, 0.1, h - 0.05, columns, rng.integers(1, 4))]
    body = [(-half, -d + 0.04, 0.1, half, 0, h - 0.04), (-half, -d + 0.1, 0, half, 0, 0.1)]
    kind = rng.integers(4) if half > 0.5 else 3
    at = rng.uniform(-half + 0.4, half - 0.4) if kind < 2 else 0.0
    if kind == 0:  # a sink: the worktop around a recess
        body += [(-half, -d, h - 0.04, at - 0.25, 0, h), (at + 0.25, -d, h - 0.04, half, 0, h)]
        edges = ((-d, -d + 0.1), (-0.12, 0))
        body += [(at - 0.25, y0, h - 0.04, at + 0.25, y1, h) for y0, y1 in edges]
        body[0] = (-half, -d + 0.04, 0.1, half, 0, h - 0.18)
        parts.append(tap(rng).placed(pose(at, -0.08, h)))
    else:
        body.append((-half, -d, h - 0.04, half, 0, h))
    if kind == 1:
        places = [(at + x, -d / 2 + y) for x in (-0.14, 0.14) for y in (-0.13, 0.13)]
        hobs = rods([(0.09, *place, h, *place, h + 0.02) for place in places])
        parts += [hobs, boxes(at - 0.28, -d - 0.01, 0.3, at + 0.28, -d + 0.03, h - 0.12)]
        parts.append(rods(0.01, at - 0.22, -d - 0.05, h - 0.17, at + 0.22, -d - 0.05, h - 0.17))
    if rng.random() < 0.4:
        body.append((-half, -0.02, h, half, 0, h + rng.uniform(0.05, 0.6)))  # tiles
    parts.append(boxes(body))
    if rng.random() < 0.65:
        z0, z1, deep = h + rng.uniform(0.45, 0.6), rng.uniform(1.9, 2.3), rng.uniform(0.3, 0.38)
        parts.append(boxes(-half, -deep, z0, half, 0, z1))
        parts.append(fronts(rng, -half, half, -deep, z0, z1, columns, 1))
    tops = [(-half, -d, at - 0.3 if kind == 0 else half, 0, h)]
    if kind == 0:
        tops.append((at + 0.3, -d, half, 0, h))
    return Piece(Solids.join(*parts), [top for top in tops if top[2] - top[0] > 0.1])


def fridge(rng: np.random.Generator) -> Piece:
    half, d, h = between(rng, [0.28, 0.58, 0.85], [0.4, 0.75, 2.0])
    split = rng.uniform(0.3, 0.7) * h
    rows = [
        (-half, -d, 0.03, half, 0, h),
        (-half, -d - 0.05, 0.06, half, -d - 0.005, split - 0.006),
        (-half, -d - 0.05, split + 0.006, half, -d - 0.005, h),
    ]
    x = half - 0.05
    grips = (split - 0.35, split - 0.05), (split + 0.05, min(split + 0.35, h))
    grip = rods([(0.012, x, -d - 0.09, low, x, -d - 0.09, high) for low, high in grips])
    return Piece(Solids.join(boxes(rows), grip), [(-half, -d, half, 0, h)])


def machine(rng: np.random.Generator) -> Piece:
    """A washing machine, a dishwasher or a free-standing oven."""
    half, d, h = between(rng, [0.28, 0.5, 0.8], [0.32, 0.65, 0.9])
    panel = (-half + 0.02, -d - 0.015, h - 0.13, half - 0.02, -d, h - 0.02)
    parts = [boxes([(-half, -d, 0.02, half, 0, h), panel])]
    if rng.random() < 0.6:
        parts.append(rods(0.19, 0, -d - 0.03, h * 0.45, 0, -d, h * 0.45))
        parts.append(balls(0, -d - 0.02, h * 0.45, 0.13, 0.04, 0.13))
    else:
        parts.append(rods(0.012, -half * 0.8, -d - 0.05, h - 0.18, half * 0.8, -d - 0.05, h - 0.18))
    return Piece(Solids.join(*parts), [(-half, -d, half, 0, h)])


def microwave_stand(rng: np.random.Generator) -> Piece:
    half, d, h = between(rng, [0.25, 0.35, 0.7], [0.35, 0.5, 0.95])
    rows = [(x - 0.015, y - 0.015, 0, x + 0.015, y + 0.015, h) for x in (-half, half) for y in (-d, -0.03)]
    rows += [(-half, -d, z - 0.02, half, 0, z) for z in (0.2, h * 0.55, h)]
    oven = [
        (-half * 0.9, -d * 0.9, h, half * 0.9, -0.03, h + 0.3),
        (-half * 0.85, -d * 0.9 - 0.015, h + 0.03, half * 0.4, -d * 0.9, h + 0.27),
    ]
    return Piece(boxes(rows + oven), [(-half, -d, half, 0, z) for z in (0.2, h * 0.55)])


def tap(rng: np.random.Generator) -> Solids:
    """A tap at the origin, its arm to -y."""
    h, arm = between(rng, [0.1, 0.1], [0.32, 0.22])
    rows = [(0.014, 0, 0, 0, 0, 0, h), (0.012, 0, 0, h, 0, -arm, h)]
    rows += [(0.012, 0, -arm, h, 0, -arm, h - 0.05), (0.025, 0, 0, 0, 0, 0, 0.04)]
    return Solids.join(rods(rows), balls(0.05, 0, 0.05, 0.04, 0.012, 0.012))


def toilet(rng: np.random.Generator) -> Piece:
    h, long = between(rng, [0.38, 0.26], [0.45, 0.32])
    parts = [balls([(0, -0.42, h - 0.12, 0.2, long, 0.2), (0, -0.35, 0.12, 0.13, 0.2, 0.25)])]
    top = h + rng.uniform(0.3, 0.42)
    parts.append(boxes([(-0.12, -0.45, 0, 0.12, -0.1, h * 0.6), (-0.2, -0.19, h - 0.02, 0.2, -0.02, top)]))
    seat = ring(0.17, 0, 0.03, 16, 0.06).placed(pose(0, -0.42, h + 0.02) @ np.diag([1, 1.35, 1, 1]))
    lid = balls(0, 0, 0.22, 0.19, 0.02, 0.24).placed(pose(0, -0.2, h + 0.04, 0, 0, one_of(rng, [-4, 78])))
    return Piece(Solids.join(*parts, seat, lid), [(-0.18, -0.18, 0.18, -0.03, h + 0.4)])


def washbasin(rng: np.random.Generator) -> Piece:
    """A basin on a foot or a cupboard, a mirror above."""
    half, d, h = between(rng, [0.22, 0.4, 0.8], [0.45, 0.55, 0.9])
    rim = [(-half, -d, h - 0.14, -half + 0.05, 0, h), (half - 0.05, -d, h - 0.14, half, 0, h)]
    rim += [
        (-half, -d, h - 0.14, half, -d + 0.05, h),
        (-half, -0.12, h - 0.14, half, 0, h),
        (-half, -d, h - 0.16, half, 0, h - 0.12),
    ]
    parts = [boxes(rim), tap(rng).placed(pose(0, -0.07, h))]
    if rng.random() < 0.5:
        parts.append(poles(0.09, 0, -d * 0.4, 0, h - 0.1))
    else:
        parts.append(boxes(-half * 0.9, -d * 0.9, 0.15, half * 0.9, 0, h - 0.14))
        parts.append(fronts(rng, -half * 0.9, half * 0.9, -d * 0.9, 0.17, h - 0.16, 2, 1))
    parts.append(boxes(-half * 0.8, -0.03, h + 0.25, half * 0.8, 0, h + rng.uniform(0.7, 1.1)))
    parts += [clutter(rng, 0.15).placed(pose(x, -0.06, h)) for x in (-half + 0.08, half - 0.08)]
    return Piece(Solids.join(*parts))


def bath(rng: np.random.Generator) -> Piece:
    half, d, h = between(rng, [0.75, 0.65, 0.5], [0.9, 0.8, 0.62])
    t = rng.uniform(0.05, 0.1)
    rows = [
        (-half, -d, 0, half, -d + t, h),
        (-half, -t, 0, half, 0, h),
        (-half, -d, 0, -half + t, 0, h),
        (half - t, -d, 0, half, 0, h),
        (-half, -d, 0, half, 0, 0.15),
    ]
    parts = [boxes(rows), tap(rng).placed(pose(-half + 0.06, -d / 2, h, -90))]
    parts.append(poles(0.012, -half + 0.05, -0.05, h + 0.3, 2.0))
    parts.append(balls(-half + 0.12, -0.1, 2.0, 0.07, 0.07, 0.03))
    return Piece(Solids.join(*parts), [(-half, -t, half, 0, h)])


def towel_rail(rng: np.random.Generator) -> Piece:
    half, z = between(rng, [0.2, 1.0], [0.35, 1.5])
    bars = [(0.01, -half, -0.07, a, half, -0.07, a) for a in z + np.arange(rng.integers(1, 7)) * 0.08]
    low, share = between(rng, [0.3, 0], [0.6, 0.9])
    towel = boxes(-half * 0.7, -0.1, z - low, half * share, -0.05, z + 0.02)
    return Piece(Solids.join(rods(bars), towel.uneven(0.012)))
