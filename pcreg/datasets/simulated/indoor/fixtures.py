"""Fixtures of buildings, and things on walls, on ceilings and in corners."""

from itertools import pairwise

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import assembly, blob, clutter, lathe, plant
from pcreg.datasets.simulated.indoor.piece import Piece, between, one_of, pose, ring
from pcreg.datasets.simulated.solids import Solids, balls, boxes, cones, poles, rods


def radiator(rng: np.random.Generator) -> Piece:
    half, z0, z1 = between(rng, [0.25, 0.08, 0.45], [0.8, 0.15, 0.9])
    if rng.random() < 0.5:  # ribs
        x = np.arange(-half, half, rng.uniform(0.05, 0.1))
        ribs = boxes(x, -0.13, z0, x + 0.045, -0.03, z1)
    else:
        ribs = boxes([(-half, -0.12, z0, half, -0.08, z1), (-half, -0.07, z0, half, -0.03, z1)])
    end, low = half + 0.03, z0 + 0.05
    pipe = rods([(0.011, end, -0.08, 0, end, -0.08, low), (0.011, half, -0.08, low, end, -0.08, low)])
    return Piece(Solids.join(ribs, pipe))


def pictures(rng: np.random.Generator) -> Piece:
    """Frames, mirrors, boards or a clock."""
    rows, x = [], -0.6
    for _ in range(rng.integers(1, 4)):
        half, tall, t = between(rng, [0.1, 0.1, 0.01], [0.45, 0.4, 0.04])
        z = rng.uniform(1.35, 1.7)
        rows.append((x, -t, z - tall, x + 2 * half, 0, z + tall))
        if rng.random() < 0.5:
            f = 0.03
            rows[-1] = (x, -t * 0.5, z - tall, x + 2 * half, 0, z + tall)
            rows += [(a, -t, z - tall, a + f, 0, z + tall) for a in (x, x + 2 * half - f)]
            rows += [(x, -t, b, x + 2 * half, 0, b + f) for b in (z - tall, z + tall - f)]
        x += 2 * half + rng.uniform(0.05, 0.3)
    return Piece(boxes(rows))


def television(rng: np.random.Generator) -> Piece:
    half, tall, z = between(rng, [0.35, 0.2, 0.45], [0.7, 0.42, 0.65])
    rows = [
        (-half * 1.2, -0.45, 0, half * 1.2, -0.02, z - 0.1),
        (-half * 1.15, -0.4, z - 0.1, half * 1.15, -0.05, z),
        (-half, -0.28, z + 0.06, half, -0.23, z + 0.06 + 2 * tall),
        (-0.2, -0.35, z, 0.2, -0.15, z + 0.015),
        (-0.04, -0.25, z, 0.04, -0.22, z + 0.2),
    ]
    return Piece(boxes(rows), [(-half * 1.15, -0.4, half * 1.15, -0.3, z)])


def curtain(rng: np.random.Generator) -> Piece:
    """A wavy sheet from a rail: upright rods side by side, every other one further out."""
    half, top, low = between(rng, [0.3, 2.0, 0.02], [1.2, 2.4, 0.9])
    fold = rng.uniform(0.04, 0.11)
    x = np.arange(-half, half, fold)
    out = rng.normal(0, 0.015, len(x)) - 0.09 + np.where(np.arange(len(x)) % 2, 0.5, -0.5) * fold * 0.5
    sway = rng.normal(0, 0.02, len(x))
    folds = rods(1.0, x, out, low, x + sway, out, top)
    folds.T_world_unit[:, :3, :2] *= fold * 0.75  # the radius
    rail = rods(0.014, -half - 0.1, -0.09, top, half + 0.1, -0.09, top)
    return Piece(Solids.join(folds.uneven(0.012), rail))


def blinds(rng: np.random.Generator) -> Piece:
    half, top, low = between(rng, [0.3, 1.9, 0.8], [0.8, 2.2, 1.4])
    z = np.arange(low, top, rng.uniform(0.035, 0.06))
    slat, tilt = boxes(-half, -0.02, -0.002, half, 0.02, 0.002), rng.uniform(10, 60)
    return Piece(slat.copies(np.stack([pose(0, -0.04, a, 0, 0, tilt) for a in z])))


def pipes(rng: np.random.Generator) -> Piece:
    """Water or heating pipes, or a cable duct, up or along the wall."""
    rows = []
    for n in range(rng.integers(1, 4)):
        r, y = between(rng, [0.008, -0.09], [0.05, -0.04])
        if rng.random() < 0.6:
            rows.append((r, n * 0.12, y, 0, n * 0.12, y, 2.6))
        else:
            z = one_of(rng, [0.15, 0.3, 2.1, 2.3]) + n * 0.1
            rows += [(r, -0.8, y, z, 0.8, y, z), (r * 1.3, 0.3, y, z, 0.38, y, z)]
    return Piece(rods(rows))


def column(rng: np.random.Generator) -> Piece:
    """A chimney breast, a pilaster, a round column."""
    half, d = between(rng, [0.12, 0.1], [0.5, 0.4])
    if rng.random() < 0.3:
        return Piece(poles(half * 0.6, 0, -half * 0.6, 0, 3.2))
    return Piece(boxes([(-half, -d, 0, half, 0, 3.2), (-half - 0.015, -d - 0.015, 0, half + 0.015, 0, 0.09)]))


def fireplace(rng: np.random.Generator) -> Piece:
    half, d, h = between(rng, [0.5, 0.25, 0.95], [0.75, 0.4, 1.2])
    rows = [
        (-half, -d, 0, -half * 0.6, 0, h),
        (half * 0.6, -d, 0, half, 0, h),
        (-half, -d, h * 0.7, half, 0, h),
        (-half - 0.08, -d - 0.08, h, half + 0.08, 0, h + 0.05),
    ]
    rows += [(-half, -d - 0.3, 0, half, 0, 0.04), (-half * 0.6, -0.1, 0, half * 0.6, 0, h)]
    logs = [
        (0.05, -0.25, -0.2 - 0.05 * n, 0.08 + 0.07 * n, 0.25, -0.22 + 0.04 * n, 0.1 + 0.06 * n)
        for n in range(3)
    ]
    return Piece(Solids.join(boxes(rows), rods(logs)), [(-half, -d, half, 0, h + 0.05)])


def door(rng: np.random.Generator) -> Piece:
    """A closed door with its frame, or one that stands open before the wall."""
    half, h = between(rng, [0.35, 1.95], [0.5, 2.15])
    frame = [
        (-half - 0.08, -0.03, 0, -half, 0, h + 0.08),
        (half, -0.03, 0, half + 0.08, 0, h + 0.08),
        (-half, -0.03, h, half, 0, h + 0.08),
    ]
    z = np.linspace(0.15, h - 0.1, rng.integers(2, 5))
    raised = [
        (x0, -0.055, a, x1, -0.04, b - 0.12)
        for a, b in pairwise(z)
        for x0, x1 in ((-half + 0.1, -0.05), (0.05, half - 0.1))
    ]
    x = half - 0.07
    grip = [(0.01, x, -0.04, 1.02, x, -0.09, 1.02), (0.01, x, -0.09, 1.02, x - 0.12, -0.09, 1.02)]
    panels = [(-half, -0.04, 0.01, half, 0, h), *(raised if rng.random() < 0.5 else [])]
    leaf = Solids.join(boxes(panels), rods(grip))
    if rng.random() < 0.4:
        leaf = leaf.placed(pose(-half, -0.02, 0, -rng.uniform(20, 110)) @ pose(half))
    return Piece(Solids.join(boxes(frame), leaf))


def stairs(rng: np.random.Generator) -> Piece:
    """A flight along the wall with its railing."""
    count, wide = rng.integers(4, 13), rng.uniform(0.7, 1.1)
    run, rise = between(rng, [0.24, 0.15], [0.3, 0.2])
    x = (np.arange(count) - count / 2) * run
    z = np.arange(1, count + 1) * rise
    steps = boxes(x, -wide, np.maximum(z - 2 * rise, 0), x + run, 0, z)
    posts = poles(0.012, x + run / 2, -wide, z, z + 0.9)
    rail = rods(0.025, x[0], -wide, z[0] + 0.85, x[-1] + run, -wide, z[-1] + 0.95)
    return Piece(Solids.join(steps, posts, rail))


def railing(rng: np.random.Generator) -> Piece:
    half = rng.uniform(0.5, 1.4)
    x = np.arange(-half, half, rng.uniform(0.08, 0.16))
    bars = poles(0.009, x, -0.5, 0.08, 0.95)
    rails = rods([(0.022, -half, -0.5, z, half, -0.5, z) for z in (0.08, 0.95)])
    return Piece(Solids.join(bars, rails))


def bin(rng: np.random.Generator) -> Piece:
    r, h = between(rng, [0.1, 0.22], [0.2, 0.65])
    parts = [ring(r, 0, h, 16, 0.006, rng.uniform(1, 1.3)), poles(r * 0.98, 0, 0, 0, 0.02)]
    if rng.random() < 0.5:
        parts.append(blob(rng).placed(pose(z=h * 0.6)))
    elif rng.random() < 0.5:
        parts.append(balls(0, 0, h, r * 1.1, r * 1.1, r * rng.uniform(0.2, 0.6)))
    return Piece(Solids.join(*parts))


def floor_lamp(rng: np.random.Generator) -> Piece:
    top, r = between(rng, [1.3, 0.12], [1.8, 0.24])
    shade = ring(r, top, top + rng.uniform(0.2, 0.35), 16, 0.005, rng.uniform(0.5, 1))
    return Piece(Solids.join(shade, rods([(0.15, 0, 0, 0, 0, 0, 0.03), (0.014, 0, 0, 0, 0, 0, top + 0.1)])))


def big_plant(rng: np.random.Generator) -> Piece:
    return Piece(plant(rng, rng.uniform(0.6, 1.1)))


def big_thing(rng: np.random.Generator) -> Piece:
    """A large thing without a name, such as a sculpture: clutter, enlarged 1.5 to 4 times."""
    thing = (assembly, blob, lathe)[rng.integers(3)](rng)
    return Piece(thing.placed(np.diag([*rng.uniform(1.5, 4, 3), 1])), [])


def easel(rng: np.random.Generator) -> Piece:
    """A tripod with a board, a music stand, a tripod with a device."""
    h, spread = between(rng, [1.0, 0.25], [1.6, 0.45])
    angles = np.arange(3) * 2 * np.pi / 3 + rng.uniform(0, 2)
    legs = rods([(0.012, spread * np.cos(a), spread * np.sin(a), 0, 0, 0, h * 0.9) for a in angles])
    if rng.random() < 0.5:
        top = boxes(-0.3, -0.01, 0, 0.3, 0.01, 0.45).placed(pose(0, 0, h * 0.75, 0, 0, -15))
    else:
        top = clutter(rng, 0.2).placed(pose(z=h * 0.9))
    return Piece(Solids.join(legs, top))


def ladder(rng: np.random.Generator) -> Piece:
    """A board leaning at the wall, or a broom and sticks."""
    h, half = between(rng, [1.3, 0.15], [2.2, 0.22])
    rows = [(0.018, x, -0.4, 0, x, -0.05, h) for x in (-half, half)]
    rungs = [(-0.4 + 0.35 * t, h * t) for t in np.arange(0.12, 1, 0.14)]
    rows += [(0.014, -half, *rung, half, *rung) for rung in rungs]
    sticks = [(0.012, x, -0.2, 0, x + 0.1, -0.02, rng.uniform(1, 1.5)) for x in (0.4, 0.5)]
    return Piece(rods(rows if rng.random() < 0.6 else sticks))


def bicycle(rng: np.random.Generator) -> Piece:
    """Thin rings and tubes."""
    r = rng.uniform(0.28, 0.34)
    angles = np.linspace(0, 2 * np.pi, 17)
    wheel = np.c_[r * np.cos(angles), np.zeros(17), r + r * np.sin(angles)]
    rows = []
    for x in (-0.5, 0.5):
        at = wheel + np.array([x, 0, 0])
        rows += np.c_[np.full(16, 0.02), at[:-1], at[1:]].tolist()
        rows += [(0.003, x, 0, r, *rim) for rim in at[:-1:2]]
    back, head, crank, seat = (-0.5, 0, r), (0.35, 0, 0.85), (-0.08, 0, 0.28), (-0.2, 0, 0.9)
    tubes = (back, crank), (crank, head), (seat, crank), (seat, head), (back, seat), (head, (0.5, 0, r))
    rows += [(0.016, *a, *b) for a, b in tubes]
    rows += [(0.012, 0.32, -0.25, 1.0, 0.32, 0.25, 1.0), (0.012, *head, 0.32, 0, 1.0)]
    saddle = balls(-0.22, 0, 0.95, 0.13, 0.07, 0.04)
    return Piece(Solids.join(rods(rows), saddle).placed(pose(0, -0.3, 0, 0, 0, rng.uniform(-8, 0))))


def figure(rng: np.random.Generator) -> Piece:
    """A mannequin, standing or sitting."""
    h = rng.uniform(0.85, 1.05)
    body = [(0, 0, 1.2, 0.2, 0.13, 0.32), (0, 0, 0.92, 0.18, 0.13, 0.16), (0, -0.02, 1.63, 0.085, 0.1, 0.12)]
    limbs = [(0.075, s * 0.1, 0, 0.05, s * 0.1, rng.normal(0, 0.06), 0.9) for s in (-1, 1)]
    limbs += [(0.045, s * 0.22, 0, 1.42, s * 0.27, rng.uniform(-0.3, 0.1), 1.0) for s in (-1, 1)]
    feet = [(s * 0.1, -0.06, 0.04, 0.05, 0.13, 0.05) for s in (-1, 1)]
    return Piece(Solids.join(balls(body + feet), rods(limbs)).uneven(0.012).placed(np.diag([h, h, h, 1])))


def pendant(rng: np.random.Generator, ceiling: float) -> Solids:
    """A lamp under the ceiling: hanging, or flat."""
    if rng.random() < 0.5:
        return boxes(-0.6, -0.12, ceiling - 0.08, 0.6, 0.12, ceiling)
    drop, r = between(rng, [0.3, 0.1], [0.9, 0.3])
    cord = poles(0.008, 0, 0, ceiling - drop, ceiling)
    if rng.random() < 0.5:
        return Solids.join(cord, balls(0, 0, ceiling - drop, r, r, r * 0.7))
    return Solids.join(cord, cones(r, 0, 0, ceiling - drop - r, 0, 0, ceiling - drop + 0.1))


def beams(rng: np.random.Generator, width: float, depth: float, ceiling: float) -> Solids:
    """Beams or ducts under the ceiling."""
    size, step = between(rng, [0.06, 0.5], [0.2, 1.4])
    if rng.random() < 0.5:
        y = np.arange(step / 2, depth, step)
        return boxes([(0, a - size / 2, ceiling - size, width, a + size / 2, ceiling) for a in y])
    y, z = rng.uniform(0.3, depth - 0.3, rng.integers(1, 3)), ceiling - size * 1.5
    return rods([(size, 0, a, z, width, a, z) for a in y])
