"""Things to sit and lie on."""

from dataclasses import replace

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import cloth
from pcreg.datasets.simulated.indoor.piece import Piece, between, pose
from pcreg.datasets.simulated.solids import Solids, balls, boxes, rods
from pcreg.kernels.raycast import Shape


def chair(rng: np.random.Generator) -> Piece:
    """A chair with four legs and a back of a board, slats or rails."""
    w, d, seat, top = between(rng, [0.19, 0.19, 0.42, 0.75], [0.25, 0.24, 0.49, 1.05])
    leg, splay = rng.uniform(0.012, 0.024), 1 + rng.uniform(0, 0.05) * 4
    sides, rear = (-w * 0.9, w * 0.9), d * 0.9
    legs = [(leg, x * splay, y * splay, 0, x, y, seat) for x in sides for y in (-rear, rear)]
    posts = [(leg, x, rear, seat, x, rear + 0.07, top) for x in sides]
    frame = rods(legs + posts)
    if rng.random() >= 0.6:  # with a square section
        frame = replace(frame, shape=np.full_like(frame.shape, Shape.BOX))
    parts = [frame, boxes(-w, -d, seat - 0.025, w, d, seat)]
    if rng.random() < 0.5:
        parts.append(balls(0, 0, seat, w, d, rng.uniform(0.02, 0.05)).uneven(0.004))
    style = rng.integers(3)
    lean = np.degrees(np.arctan2(-0.07, top - seat))
    if style == 0:
        back = boxes(-w, -0.012, (top - seat) * rng.uniform(0.1, 0.5), w, 0.012, top - seat)
    elif style == 1:
        slats = np.linspace(-w * 0.7, w * 0.7, rng.integers(3, 7))
        back = boxes([(x - 0.015, -0.01, 0, x + 0.015, 0.01, top - seat) for x in slats])
    else:
        z = np.linspace(0.35, 0.95, rng.integers(2, 4)) * (top - seat)
        back = boxes([(-w, -0.01, h - 0.03, w, 0.01, h + 0.03) for h in z])
    parts.append(back.placed(pose(0, rear, seat, 0, 0, lean)))
    if rng.random() < 0.25:
        parts.append(cloth(rng).placed(pose(0, rear + 0.05, top - 0.05) @ np.diag([1.2, 0.5, 2.5, 1])))
    return Piece(Solids.join(*parts), [(-w, -d, w, d, seat)])


def office_chair(rng: np.random.Generator) -> Piece:
    """An office chair on five castors, with a padded seat and back."""
    seat, w = between(rng, [0.42, 0.23], [0.55, 0.28])
    angles = np.arange(5) * 2 * np.pi / 5 + rng.uniform(0, 1)
    feet = np.c_[0.3 * np.cos(angles), 0.3 * np.sin(angles)]
    spokes = [(0.022, 0, 0, 0.12, *foot, 0.07) for foot in feet]
    castors = balls([(*foot, 0.03, 0.03, 0.03, 0.03) for foot in feet])
    cushion = Solids.join(
        balls(0, 0, seat, w * 1.1, w * 1.1, 0.06),
        boxes(-w * 0.85, -w * 0.85, seat - 0.04, w * 0.85, w * 0.85, seat + 0.03),
    )
    tall = rng.uniform(0.2, 0.36)
    board = boxes(-w * 0.7, -0.04, 0.1, w * 0.7, 0.03, tall * 1.6)
    back = Solids.join(balls(0, 0, tall, w, 0.06, tall), board)
    posts = [(0.03, 0, 0, 0.1, 0, 0, seat), (0.02, 0, 0.2, seat - 0.05, 0, w + 0.04, seat + 0.2)]
    back = back.placed(pose(0, w, seat + 0.05, 0, 0, rng.uniform(-18, -4))).uneven(0.006)
    parts = [rods([*spokes, *posts]), castors, cushion.uneven(0.006), back]
    if rng.random() < 0.6:
        arms = [(x - 0.025, -0.1, seat + 0.2, x + 0.025, 0.15, seat + 0.23) for x in (-w - 0.03, w + 0.03)]
        arms += [(x - 0.015, 0, seat - 0.02, x + 0.015, 0.04, seat + 0.2) for x in (-w - 0.03, w + 0.03)]
        parts.append(boxes(arms))
    chair = Solids.join(*parts).placed(pose(yaw=rng.uniform(-60, 60)))
    return Piece(chair, [(-0.15, -0.15, 0.15, 0.15, seat + 0.05)])


def stool(rng: np.random.Generator) -> Piece:
    r, h, splay = between(rng, [0.14, 0.4, 1.0], [0.2, 0.8, 1.5])
    angles = np.arange(4) * np.pi / 2
    feet = r * 0.8 * np.c_[np.cos(angles), np.sin(angles)]
    legs = [(0.014, *(foot * splay), 0, *foot, h) for foot in feet]
    rail = np.roll(feet, 1, 0) * (splay + 1) / 2
    bars = [(0.008, *a, h / 2, *b, h / 2) for a, b in zip(feet * (splay + 1) / 2, rail, strict=True)]
    return Piece(rods([*legs, *bars, (r, 0, 0, h - 0.03, 0, 0, h)]), [(-0.1, -0.1, 0.1, 0.1, h)])


def sofa(rng: np.random.Generator) -> Piece:
    """A sofa of one to three padded seats, with cushions."""
    seats = rng.integers(1, 4)
    w, d, seat, top = between(rng, [0.26, 0.75, 0.36, 0.68], [0.36, 1.0, 0.48, 1.0])
    half, arm, thick = seats * w, rng.uniform(0.1, 0.25), rng.uniform(0.15, 0.28)
    base = [(-half - arm, -d, 0.06, half + arm, 0, seat - 0.12)]
    ends = (-half - arm / 2, half + arm / 2)
    base += [(x - arm / 2, -d, 0.06, x + arm / 2, 0, seat + 0.2) for x in ends]
    parts = [boxes(base).uneven(0.006)]
    if rng.random() < 0.6:  # round arms
        arms = rods([(arm / 2 * 1.15, x, -d, seat + 0.2, x, -0.02, seat + 0.2) for x in ends])
        parts.append(arms.uneven(0.006))
    soft = []
    for n in range(seats):
        x = (2 * n + 1 - seats) * w
        place = pose(x, -(d + thick) / 2, seat - 0.07, 0, 0, rng.normal(0, 1.5))
        soft.append(_pad(w * 0.98, (d - thick) / 2, 0.09).placed(place))
        place = pose(x, -thick / 2, (top + seat) / 2, 0, 0, 90 - rng.uniform(4, 14))
        soft.append(_pad(w * 0.98, (top - seat) / 2 + 0.08, thick / 2).placed(place))
    for _ in range(rng.integers(0, 2 * seats + 1)):
        x = rng.uniform(-half, half)
        place = pose(x, -thick - 0.1, seat + 0.2, *between(rng, [-30, -40, 50], [30, 40, 80]))
        soft.append(_pad(rng.uniform(0.18, 0.26), rng.uniform(0.14, 0.24), 0.07).placed(place))
    parts.append(Solids.join(*soft).uneven(rng.uniform(0.006, 0.015)))
    if rng.random() < 0.4:
        throw, x = cloth(rng), rng.uniform(-half, half)
        parts.append(throw.placed(pose(x, -d * 0.6, seat) @ np.diag([1.8, 1.8, 1.0, 1])))
    return Piece(Solids.join(*parts), [(-half, -d, half, -thick - 0.1, seat + 0.02)])


def bed(rng: np.random.Generator) -> Piece:
    """A bed, its head to the wall, with mattress, pillows and a rumpled blanket."""
    w, d, top = between(rng, [0.45, 1.9, 0.4], [0.95, 2.1, 0.65])
    head = rng.uniform(0.7, 1.2)
    parts = [boxes([(-w, -d, 0.1, w, 0, top - 0.2), (-w, -0.06, 0, w, 0, head)])]
    parts.append(boxes(-w + 0.02, -d + 0.02, top - 0.2, w - 0.02, -0.06, top).uneven(0.012))
    count = 1 if w < 0.6 else 2
    soft = []
    for n in range(count * rng.integers(1, 3)):
        x = (2 * (n % count) + 1 - count) * w / 2 + rng.normal(0, 0.04)
        y, z = -0.3 - 0.1 * rng.random(), top + 0.05 + 0.08 * (n // count)
        place = pose(x, y, z, rng.normal(0, 10), 0, rng.uniform(0, 35))
        soft.append(_pad(0.33, 0.22, 0.09).placed(place))
    fold = rng.integers(8, 20)
    drawn = [between(rng, [-w, -d, -0.02, 0, -8, -8], [w, -0.8, 0.03, 180, 8, 8]) for _ in range(fold)]
    place = np.stack([pose(x, y, top + z, *angles) for x, y, z, *angles in drawn])
    radii = rng.uniform([0.15, 0.06, 0.03], [0.6, 0.3, 0.1], (fold, 3))
    soft.append(balls(0, 0, 0, *radii.T).placed(place))
    hang = rng.uniform(0.1, 0.35)
    soft.append(boxes(-w - 0.03, -d - 0.03, top - hang, w + 0.03, -rng.uniform(0.6, 1.2), top + 0.04))
    parts.append(Solids.join(*soft).uneven(rng.uniform(0.012, 0.03)))
    return Piece(Solids.join(*parts), [(-w, -d, w, -0.8, top + 0.05)])


def bench(rng: np.random.Generator) -> Piece:
    """A row of seats on one beam, as in halls and waiting rooms."""
    seats, seat = rng.integers(2, 6), rng.uniform(0.4, 0.47)
    half = seats * 0.27
    rim = seat + rng.uniform(0.25, 0.45)
    shell = boxes([(-0.23, -0.45, seat, 0.23, -0.02, seat + 0.03), (-0.23, -0.03, seat + 0.05, 0.23, 0, rim)])
    parts = [shell.placed(pose(x)) for x in (np.arange(seats) * 2 + 1 - seats) * 0.27]
    frame = [(-half, -0.25, seat - 0.08, half, -0.19, seat - 0.02)]
    frame += [(x - 0.03, -0.42, 0, x + 0.03, -0.05, 0.03) for x in (-half * 0.8, half * 0.8)]
    frame += [(x - 0.03, -0.25, 0, x + 0.03, -0.19, seat) for x in (-half * 0.8, half * 0.8)]
    return Piece(Solids.join(*parts, boxes(frame)), [(-half, -0.4, half, -0.1, seat + 0.03)])


def _pad(x: float, y: float, z: float) -> Solids:
    """A cushion about the origin with these half sizes: round edges, a swollen middle."""
    edge = z * 0.7
    rims = [(edge, -x, s * y, 0, x, s * y, 0) for s in (-1, 1)]
    rims += [(edge, s * x, -y, 0, s * x, y, 0) for s in (-1, 1)]
    return Solids.join(
        boxes(-x, -y, -edge, x, y, edge),
        balls(0, 0, 0, x * 1.1, y * 1.1, z * 1.25),
        rods(rims).placed(np.diag([0.9, 0.9, 1, 1])),
    )
