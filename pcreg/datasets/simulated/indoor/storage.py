"""Tables, desks, shelves and cupboards, on the floor and on walls."""

from itertools import pairwise

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import clutter, keyboard, monitor
from pcreg.datasets.simulated.indoor.piece import Piece, between, pose
from pcreg.datasets.simulated.solids import Solids, balls, boxes, rods


def table(rng: np.random.Generator) -> Piece:
    """A table, round or square, on legs or a foot, with its middle at the origin."""
    h, w, d = between(rng, [0.68, 0.35, 0.35], [0.78, 1.0, 0.55])
    thick = rng.uniform(0.018, 0.05)
    if rng.random() < 0.3:
        r = d
        foot = [(r, 0, 0, h - thick, 0, 0, h), (0.05, 0, 0, 0, 0, 0, h), (r * 0.55, 0, 0, 0, 0, 0, 0.03)]
        return Piece(rods(foot), [(-r * 0.7, -r * 0.7, r * 0.7, r * 0.7, h)])
    return Piece(_on_legs(rng, w, d, h, thick), [(-w, -d, w, d, h)])


def low_table(rng: np.random.Generator) -> Piece:
    h, w, d, thick = between(rng, [0.3, 0.3, 0.25, 0.015], [0.5, 0.65, 0.45, 0.05])
    tops = [(-w, -d, w, d, h)]
    body = [_on_legs(rng, w, d, h, thick)]
    if rng.random() < 0.5:
        body.append(boxes(-w * 0.9, -d * 0.9, 0.12, w * 0.9, d * 0.9, 0.14))
        tops.append((-w * 0.9, -d * 0.9, w * 0.9, d * 0.9, 0.14))
    return Piece(Solids.join(*body), tops)


def desk(rng: np.random.Generator) -> Piece:
    """A desk against a wall, with drawers, often with a screen."""
    w, d, h = between(rng, [0.5, 0.55, 0.7], [0.95, 0.85, 0.78])
    rows = [(-w, -d, h - 0.03, w, -0.01, h), (-w, -d + 0.05, 0, -w + 0.03, -0.05, h)]
    rows += [(w - 0.03, -d + 0.05, 0, w, -0.05, h), (-w, -0.06, h * 0.5, w, -0.04, h)]
    if rng.random() < 0.7:
        x = w - rng.uniform(0.35, 0.45)
        rows.append((x, -d + 0.06, 0.05, w, -0.06, h))
        z = np.linspace(0.08, h - 0.04, rng.integers(3, 5))
        rows += [(x + 0.015, -d + 0.04, a + 0.01, w - 0.015, -d + 0.06, b - 0.01) for a, b in pairwise(z)]
    parts = [boxes(rows)]
    for _ in range(rng.integers(0, 3)):
        parts.append(monitor(rng).placed(pose(rng.uniform(-w * 0.7, w * 0.7), -0.22, h, rng.normal(0, 15))))
    if rng.random() < 0.7:
        parts.append(keyboard(rng).placed(pose(rng.uniform(-0.2, 0.2), -d + 0.15, h, rng.normal(0, 8))))
    return Piece(Solids.join(*parts), [(-w, -d, w, 0, h)])


def bedside(rng: np.random.Generator) -> Piece:
    w, d, h = between(rng, [0.18, 0.3, 0.4], [0.28, 0.45, 0.65])
    rows = [(-w, -d, 0.1, w, 0, h), (-w + 0.02, -d - 0.015, 0.14, w - 0.02, -d, h - 0.04)]
    legs = [(0.015, x, y, 0, x, y, 0.1) for x in (-w * 0.8, w * 0.8) for y in (-d * 0.9, -0.05)]
    knob = balls(0, -d - 0.03, h * 0.6, 0.015, 0.02, 0.015)
    return Piece(Solids.join(boxes(rows), rods(legs), knob), [(-w, -d, w, 0, h)])


def piano(rng: np.random.Generator) -> Piece:
    w, d, h = between(rng, [0.68, 0.5, 1.05], [0.76, 0.65, 1.3])
    rows = [
        (-w, -d * 0.55, 0, w, 0, h),
        (-w, -d, 0.6, w, -d * 0.5, 0.72),
        (-w, -d * 0.6, h - 0.02, w, 0, h + 0.02),
    ]
    rows += [(x - 0.04, -d, 0, x + 0.04, -d + 0.08, 0.6) for x in (-w + 0.05, w - 0.05)]
    seat = [(-0.3, -d - 0.55, 0.45, 0.3, -d - 0.2, 0.53)]
    seat += [(x, y, 0, x + 0.04, y + 0.04, 0.45) for x in (-0.28, 0.24) for y in (-d - 0.53, -d - 0.26)]
    return Piece(boxes(rows + seat), [(-w, -d * 0.5, w, 0, h + 0.02)])


def _on_legs(rng: np.random.Generator, w: float, d: float, h: float, thick: float) -> Solids:
    leg, inset = rng.uniform(0.015, 0.04), rng.uniform(0.03, 0.1)
    x, y = w - inset, d - inset
    corners = [(sx * x, sy * y) for sx in (-1, 1) for sy in (-1, 1)]
    rows = [(-w, -d, h - thick, w, d, h)]
    if rng.random() < 0.6:
        rows += [(-x, s * y - 0.012, h - thick - 0.09, x, s * y + 0.012, h - thick) for s in (-1, 1)]
        rows += [(s * x - 0.012, -y, h - thick - 0.09, s * x + 0.012, y, h - thick) for s in (-1, 1)]
    if rng.random() < 0.5:
        rows += [(a - leg, b - leg, 0, a + leg, b + leg, h - thick) for a, b in corners]
        return boxes(rows)
    splay = rng.uniform(1, 1.1)
    legs = rods([(leg, a * splay, b * splay, 0, a, b, h - thick) for a, b in corners])
    return Solids.join(boxes(rows), legs)


def shelf(rng: np.random.Generator) -> Piece:
    """Boards between sides, each carrying books, things or nothing."""
    half, d, top = between(rng, [0.25, 0.22, 0.8], [0.8, 0.42, 2.2])
    bays, rows = max(1, round(half / 0.4)), rng.integers(2, 7)
    x = np.linspace(-half, half, bays + 1).tolist()
    z = np.linspace(rng.uniform(0.04, 0.12), top, rows + 1).tolist()
    frame = [(a - 0.012, -d, 0, a + 0.012, 0, top) for a in x]
    frame += [(-half, -d, a - 0.022, half, 0, a) for a in z]
    if rng.random() < 0.7:
        frame.append((-half, -0.012, 0, half, 0, top))
    parts = [boxes(frame)]
    for left, right in pairwise(x):
        for low, high in pairwise(z):
            parts.append(_filled(rng, left + 0.015, right - 0.015, d, low, high - 0.022))
    return Piece(Solids.join(*parts), [(-half, -d, half, 0, top)])


def wall_shelf(rng: np.random.Generator) -> Piece:
    """A shelf of one or two boards on the wall, at chest height or higher."""
    half, d = between(rng, [0.25, 0.15], [0.7, 0.3])
    parts = []
    for z in (rng.uniform(1.1, 1.4) + np.arange(rng.integers(1, 3)) * 0.38).tolist():
        parts.append(boxes(-half, -d, z - 0.025, half, 0, z))
        parts.append(_filled(rng, -half, half, d, z, z + 0.33))
    return Piece(Solids.join(*parts))


def cabinet(rng: np.random.Generator) -> Piece:
    """Chests, sideboards and wardrobes, with doors and drawers."""
    tall = rng.random() < 0.35
    bounds = ([0.35, 0.38, 1.7], [0.9, 0.65, 2.3]) if tall else ([0.3, 0.35, 0.5], [0.9, 0.55, 1.25])
    half, d, top = between(rng, *bounds)
    columns = max(1, round(half / rng.uniform(0.2, 0.35)))
    rows = rng.integers(1, 3) if tall else rng.integers(1, 6)
    body = [(-half, -d, 0.08, half, 0, top), (-half + 0.03, -d + 0.04, 0, half - 0.03, 0, 0.08)]
    body.append((-half - 0.015, -d - 0.02, top - 0.02, half + 0.015, 0, top + 0.01))
    parts = [fronts(rng, -half, half, -d, 0.1, top - 0.03, columns, rows), boxes(body)]
    return Piece(Solids.join(*parts), [(-half, -d, half, 0, top + 0.01)])


def fronts(
    rng: np.random.Generator, x0: float, x1: float, y: float, z0: float, z1: float, columns: int, rows: int
) -> Solids:
    """Doors or drawers in a grid on the face y, with grips of one kind; now and then one stands ajar."""
    x, z = np.linspace(x0, x1, columns + 1).tolist(), np.linspace(z0, z1, rows + 1).tolist()
    gap, thick, kind = rng.uniform(0.002, 0.012), rng.uniform(0.012, 0.025), rng.integers(4)
    upright = (z1 - z0) / rows > (x1 - x0) / columns
    doors, panels, grips, ajar = [], [], [], []
    for a, b in pairwise(x):
        a, b = a + gap, b - gap
        for low, high in pairwise(z):
            low, high = low + gap, high - gap
            if upright and rng.random() < 0.06:
                leaf = boxes(0, -thick, low, b - a, 0, high)
                ajar.append(leaf.placed(pose(a, y, 0, -rng.uniform(10, 100))))
                continue
            doors.append((a, y - thick, low, b, y, high))
            if kind == 3:
                edge = 0.15 * min(b - a, high - low)
                panels.append((a + edge, y - thick - 0.008, low + edge, b - edge, y - thick, high - edge))
            at = (b - 0.05, (low + high) / 2) if upright else ((a + b) / 2, (low + high) / 2)
            size = min(0.09, (b - a) / 3)
            dx, dz = (0, size) if upright else (size, 0)
            if kind == 0:
                out = y - thick - 0.03
                grips.append(rods(0.007, at[0] - dx, out, at[1] - dz, at[0] + dx, out, at[1] + dz))
            elif kind != 2:
                grips.append(balls(at[0], y - thick - 0.015, at[1], 0.016, 0.018, 0.016))
    return Solids.join(boxes(doors), boxes(panels), *grips, *ajar)


def rack_with_clothes(rng: np.random.Generator) -> Piece:
    """A rail on two stands, clothes hanging from it."""
    half, top = between(rng, [0.35, 1.3], [0.8, 1.7])
    frame = [(0.015, x, -0.25, 0, x, -0.25, top) for x in (-half, half)]
    frame.append((0.015, -half, -0.25, top, half, -0.25, top))
    frame += [(0.015, x, -0.48, 0.02, x, -0.02, 0.02) for x in (-half, half)]
    hung = garments(rng, rng.integers(3, 12), half * 0.9, top).placed(pose(y=-0.25))
    return Piece(Solids.join(rods(frame), hung))


def coat_hooks(rng: np.random.Generator) -> Piece:
    half, z = between(rng, [0.2, 1.5], [0.6, 1.8])
    board = boxes(-half, -0.02, z - 0.05, half, 0, z + 0.05)
    hung = garments(rng, rng.integers(1, 6), half, z).placed(pose(y=-0.12))
    return Piece(Solids.join(board, hung))


def garments(rng: np.random.Generator, count: int, half: float, top: float) -> Solids:
    """Coats, dresses and towels that hang from height `top` at y = 0, between -half and half."""
    parts = []
    for x in rng.uniform(-half, half, count):
        long, wide, thick = between(rng, [0.25, 0.14, 0.03], [0.6, 0.26, 0.09])
        rows = [(0, 0, -long, thick, wide, long)]
        rows += [(0, y, -long, thick, 0.06, long * 0.7) for y in (wide * 0.7, -wide * 0.7)]
        place = pose(x, 0, top - 0.03, rng.normal(0, 15), rng.normal(0, 4))
        parts.append(balls(rows).placed(place).uneven(rng.uniform(0.01, 0.03)))
    return Solids.join(*parts)


def carton_stack(rng: np.random.Generator) -> Piece:
    """Cartons piled up against a wall."""
    rows = []
    for x in np.arange(rng.integers(1, 4)) * 0.45:
        z = 0.0
        for _ in range(rng.integers(1, 4)):
            w, d, h = between(rng, [0.12, 0.2, 0.15], [0.22, 0.45, 0.4])
            shift = rng.normal(0, 0.03)
            rows.append((x - w + shift, -d - 0.02, z, x + w + shift, -0.02, z + h))
            z += h
    cartons = boxes(rows)
    turns = np.stack([pose(yaw=yaw) for yaw in rng.normal(0, 4, len(cartons))])
    return Piece(cartons.placed(turns).uneven(0.003))


def _filled(rng: np.random.Generator, x0: float, x1: float, d: float, z0: float, z1: float) -> Solids:
    """The content of one bay, mostly books or things."""
    kind, room = rng.random(), z1 - z0
    if kind < 0.15 or room < 0.08:
        return Solids.join()
    if kind < 0.5:
        thick = rng.uniform(0.012, 0.06, 64)
        right = x0 + thick.cumsum()
        count = int(right.searchsorted(x0 + (x1 - x0) * rng.uniform(0.5, 1.0)))
        deep = rng.normal(d * 0.7, 0.03, count).clip(0.1, d)
        tall = np.minimum(rng.normal(rng.uniform(0.2, 0.3), 0.03, count), room - 0.01)
        right, left = right[:count], right[:count] - thick[:count] + 0.002
        return boxes(left, -deep, z0, right, -0.01, z0 + tall)
    if kind < 0.6:
        return boxes(x0 + 0.02, -d * 0.95, z0, x1 - 0.02, -0.02, z0 + room * rng.uniform(0.5, 0.9))
    count = 1 + rng.poisson((x1 - x0) * 4)
    xs = (np.linspace(x0, x1, count + 2)[1:-1] + rng.normal(0, 0.02, count)).tolist()
    return Solids.join(
        *(clutter(rng, min(room * 0.95, 0.35)).placed(pose(x, -d * rng.uniform(0.4, 0.65), z0)) for x in xs)
    )
