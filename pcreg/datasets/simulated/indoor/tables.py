"""Tables and desks."""

from itertools import pairwise

import numpy as np

from pcreg.datasets.simulated.indoor.clutter import keyboard, monitor
from pcreg.datasets.simulated.indoor.draws import between
from pcreg.datasets.simulated.indoor.piece import Piece, pose
from pcreg.datasets.simulated.solids import Solids, balls, boxes, rods


def table(rng: np.random.Generator) -> Piece:
    """A table, round or square, on legs or a foot, with its middle at the origin."""
    h, w, d = between(rng, [0.68, 0.35, 0.35], [0.78, 1.0, 0.55])
    thick = rng.uniform(0.018, 0.05)
    if rng.random() < 0.3:
        r = d
        foot = rods(
            [(r, 0, 0, h - thick, 0, 0, h), (0.05, 0, 0, 0, 0, 0, h), (r * 0.55, 0, 0, 0, 0, 0, 0.03)]
        )
        return Piece(foot, [(-r * 0.7, -r * 0.7, r * 0.7, r * 0.7, h)])
    return Piece(_on_legs(rng, w, d, h, thick), [(-w, -d, w, d, h)])


def low_table(rng: np.random.Generator) -> Piece:
    h, w, d, thick = between(rng, [0.3, 0.3, 0.25, 0.015], [0.5, 0.65, 0.45, 0.05])
    tops = [(-w, -d, w, d, h)]
    body = [_on_legs(rng, w, d, h, thick)]
    if rng.random() < 0.5:
        body.append(boxes([(-w * 0.9, -d * 0.9, 0.12, w * 0.9, d * 0.9, 0.14)]))
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
    knob = balls([(0, -d - 0.03, h * 0.6, 0.015, 0.02, 0.015)])
    return Piece(Solids.join(boxes(rows), rods(legs), knob), [(-w, -d, w, 0, h)])


def piano(rng: np.random.Generator) -> Piece:
    w, d, h = between(rng, [0.68, 0.5, 1.05], [0.76, 0.65, 1.3])
    rows = [
        (-w, -d * 0.55, 0, w, 0, h),
        (-w, -d, 0.6, w, -d * 0.5, 0.72),
        (-w, -d * 0.6, h - 0.02, w, 0, h + 0.02),
    ]
    rows += [(x - 0.04, -d, 0, x + 0.04, -d + 0.08, 0.6) for x in (-w + 0.05, w - 0.05)]
    seat = boxes(
        [(-0.3, -d - 0.55, 0.45, 0.3, -d - 0.2, 0.53)]
        + [(x, y, 0, x + 0.04, y + 0.04, 0.45) for x in (-0.28, 0.24) for y in (-d - 0.53, -d - 0.26)]
    )
    return Piece(Solids.join(boxes(rows), seat), [(-w, -d * 0.5, w, 0, h + 0.02)])


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
    return Solids.join(
        boxes(rows), rods([(leg, a * splay, b * splay, 0, a, b, h - thick) for a, b in corners])
    )
