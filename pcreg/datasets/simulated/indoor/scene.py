"""Furnished rooms, corridors and pairs of rooms, drawn from a seeded generator.

World frame: x and y along the walls, z up, the floor at z = 0, metres.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pcreg.datasets.simulated.indoor import fixtures
from pcreg.datasets.simulated.indoor.clutter import clutter
from pcreg.datasets.simulated.indoor.piece import between, extent, one_of, pose
from pcreg.datasets.simulated.indoor.styles import STYLES, WALL_PIECES, Style, furnished, laden
from pcreg.datasets.simulated.solids import Solids, boxes, rods

WALL = 0.15  # thickness, metres
Opening = tuple[float, float, float, float]  # x0, x1, z0, z1 of a window or a passage
Openings = list[list[Opening]]  # of the walls at y = depth, x = width, y = 0, x = 0


@dataclass(frozen=True)
class Scene:
    """Solids, and the rectangles (x0, y0, x1, y1) of the floors."""

    solids: Solids
    floors: np.ndarray  # (rooms, 4)


def indoor_scene(rng: np.random.Generator, house: np.random.Generator | None = None) -> Scene:
    """Draw one room, a corridor, or two rooms with a passage between them, of any style.

    Rooms drawn with generators `house` in the same state share one style and the same few pieces of
    furniture.
    """
    style = one_of(rng, STYLES) if house is None else furnished(one_of(house, STYLES), house)
    if rng.random() < 0.3:
        return _two_rooms(rng, style, one_of(rng, STYLES) if house is None else style)
    room = _Room(rng, *_size(rng, style))
    solids = room.furnish(style, room.openings())
    return Scene(solids, np.array([(0, 0, room.width, room.depth)]))


def _two_rooms(rng: np.random.Generator, first: Style, second: Style) -> Scene:
    (w1, d1, height), (w2, d2, _) = _size(rng, first), _size(rng, second)
    wide = rng.uniform(0.8, min(2.2, d1 - 0.8, d2 - 0.8))
    y = rng.uniform(0.3, min(d1, d2) - wide - 0.3)
    top = rng.uniform(2.0, height - 0.1)
    one, two = _Room(rng, w1, d1, height), _Room(rng, w2, d2, height)
    holes, others = one.openings(), two.openings()
    holes[1] = [(d1 - y - wide, d1 - y, 0.0, top)]  # the wall's x axis runs from y = d1 to y = 0
    others[3] = [(y, y + wide, 0.0, top)]
    left = one.furnish(first, holes, beyond=False)
    right = two.furnish(second, others, beyond=False).placed(pose(w1 + WALL))
    floors = [(0, 0, w1, d1), (w1 - 0.3, y, w1 + WALL + 0.3, y + wide), (w1 + WALL, 0, w1 + WALL + w2, d2)]
    return Scene(Solids.join(left, right), np.array(floors))


def _size(rng: np.random.Generator, style: Style) -> tuple[float, float, float]:
    x0, x1, y0, y1 = style.size
    return rng.uniform(x0, x1), rng.uniform(y0, y1), rng.uniform(2.35, 3.1)


@dataclass
class _Room:
    """A room over (0, 0) to (width, depth), and the rectangles of its floor that are taken."""

    rng: np.random.Generator
    width: float
    depth: float
    height: float
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)  # x0, y0, x1, y1

    @property
    def walls(self) -> list[tuple[np.ndarray, float]]:
        """The frame (4, 4) and the length of each wall, with its face at y = 0 and the room at -y."""
        return [
            (pose(0, self.depth, 0, 0), self.width),
            (pose(self.width, self.depth, 0, -90), self.depth),
            (pose(self.width, 0, 0, 180), self.width),
            (pose(0, 0, 0, 90), self.depth),
        ]

    def openings(self) -> Openings:
        """Windows in some walls and a passage in one."""
        rng = self.rng
        passage, openings = rng.integers(6), []
        for n, (_, length) in enumerate(self.walls):
            holes = []
            if n == passage and length > 2.2:
                x = rng.uniform(0.3, length - 1.4)
                holes.append((x, x + rng.uniform(0.8, 1.1), 0.0, rng.uniform(1.98, 2.12)))
            elif rng.random() < 0.4 and length > 2.2:
                sill, count = rng.uniform(0.4, 1.1), rng.integers(1, 3) if length > 3 else 1
                wide = rng.uniform(0.5, min(1.6, (length - 0.8) / count - 0.3))
                gap = (length - count * wide) / (count + 1)
                left = gap + np.arange(count) * (wide + gap)
                holes = [(x, x + wide, sill, rng.uniform(1.9, 2.25)) for x in left]
            openings.append(holes)
        return openings

    def furnish(self, style: Style, openings: Openings, beyond: bool = True) -> Solids:
        """Draw walls and things, and a piece of corridor `beyond` each passage."""
        rng, parts = self.rng, [self._shell(openings)]
        load = one_of(rng, [4.0, 9.0, 16.0, 25.0])  # things per square metre of table, in this household
        for (T, _), holes in zip(self.walls, openings, strict=True):
            for x0, x1, z0, _ in holes:
                if z0 > 0:
                    parts.append(_at_window(rng, (x0 + x1) / 2).placed(T))
                    continue
                self._take(T, x0, -0.8, x1, 0)
                if beyond:
                    parts.append(_passage_beyond(rng, self.height).placed(T @ pose((x0 + x1) / 2)))
        for n in rng.permutation(4):
            parts += self._along_wall(style, *self.walls[n], openings[n], load)
        area = self.width * self.depth
        for _ in range(rng.poisson(area / 5)):
            piece = laden(rng, one_of(rng, style.free)(rng), load)
            yaw = one_of(rng, [0, 90, 180, 270]) + rng.normal(0, 12)
            for _ in range(4):
                T = pose(*self._somewhere(0.6), 0, yaw)
                if self._fits(T, piece.solids, 0.15):
                    parts.append(piece.solids.placed(T))
                    break
        for _ in range(rng.poisson(area * one_of(rng, [0.4, 1.2, 2.5]))):
            T = pose(*self._somewhere(0.15))
            parts.append(clutter(rng, 0.45).placed(T))
        for _ in range(rng.integers(1, 4)):
            parts.append(fixtures.pendant(rng, self.height).placed(pose(*self._somewhere(0.5))))
        if rng.random() < 0.25:
            parts.append(fixtures.beams(rng, self.width, self.depth, self.height))
        solids = Solids.join(*parts)
        wear = rng.lognormal(np.log(0.0006), 1.4, len(solids)).clip(0, 0.015)  # dents, folds and seams
        return replace(solids, relief=solids.relief + wear)

    def _shell(self, openings: Openings) -> Solids:
        """Floor, ceiling and walls."""
        rng, (x, y, z) = self.rng, (self.width + 1, self.depth + 1, self.height)
        parts = [boxes([(-1, -1, -WALL, x, y, 0), (-1, -1, z, x, y, z + WALL)])]
        skirting = rng.uniform(0.04, 0.12) if rng.random() < 0.7 else 0.0
        cornice = rng.uniform(0.03, 0.09) if rng.random() < 0.25 else 0.0
        for (T, length), holes in zip(self.walls, openings, strict=True):
            parts.append(_wall(rng, length, z, holes, skirting, cornice).placed(T))
        return Solids.join(*parts).uneven(rng.uniform(0.0, 0.002))

    def _along_wall(
        self, style: Style, T: np.ndarray, length: float, holes: Sequence[Opening], load: float
    ) -> list[Solids]:
        """Pieces side by side with gaps, then things that hang between and above them."""
        rng, parts = self.rng, []
        x = rng.uniform(0.0, 0.4)
        while x < length - 0.3:
            if rng.random() > style.full**0.5:
                x += rng.uniform(0.2, 1.0)
                continue
            piece = one_of(rng, style.wall)(rng)
            low, high = extent(piece.solids)
            end = x + high[0] - low[0]
            blocked = any(x < x1 and end > x0 and high[2] > z0 + 0.1 for x0, x1, z0, _ in holes)
            y = -high[1] - rng.uniform(0, 0.06)
            place = T @ pose(x - low[0], y, 0, rng.normal(0, 1.2), rng.normal(0, 0.3), rng.normal(0, 0.3))
            if end > length or blocked or not self._fits(place, piece.solids, 0.01):
                x += 0.3
                continue
            parts.append(laden(rng, piece, load).solids.placed(place))
            x = end + one_of(rng, [0.005, rng.uniform(0.0, 0.5)])
        for _ in range(rng.poisson(length * 1.3)):
            hung = one_of(rng, WALL_PIECES)(rng).solids
            x = rng.uniform(0.3, length - 0.3)
            if not any(x0 - 0.5 < x < x1 + 0.5 for x0, x1, _, _ in holes):
                parts.append(hung.placed(T @ pose(x, 0, 0, rng.normal(0, 0.5), rng.normal(0, 0.7))))
        return parts

    def _somewhere(self, margin: float) -> list[float]:
        """Random place x, y at least `margin` metres from the walls."""
        return between(self.rng, [margin, margin], [self.width - margin, self.depth - margin])

    def _take(self, T: np.ndarray, x0: float, y0: float, x1: float, y1: float) -> None:
        """Mark a rectangle, given in the frame T, as taken."""
        a, b = T[:2, :2] @ (x0, y0) + T[:2, 3], T[:2, :2] @ (x1, y1) + T[:2, 3]
        self.taken.append((*np.minimum(a, b).tolist(), *np.maximum(a, b).tolist()))

    def _fits(self, T: np.ndarray, solids: Solids, gap: float) -> bool:
        """Take the place of solids; False if it is taken or beyond the walls."""
        (x0, y0, _), (x1, y1, _) = (corner.tolist() for corner in extent(solids.placed(T)))
        x0, y0, x1, y1 = x0 + 0.03, y0 + 0.03, x1 - 0.03, y1 - 0.03
        if min(x0, y0) < -0.1 or x1 > self.width + 0.1 or y1 > self.depth + 0.1:
            return False
        for a0, b0, a1, b1 in self.taken:
            if x0 < a1 + gap and x1 > a0 - gap and y0 < b1 + gap and y1 > b0 - gap:
                return False
        self.taken.append((x0, y0, x1, y1))
        return True


def _wall(
    rng: np.random.Generator,
    length: float,
    height: float,
    openings: Sequence[Opening],
    skirting: float,
    cornice: float,
) -> Solids:
    """A wall along x; windows (z0 > 0) have bars, a frame and a sill, passages a frame."""
    rows, x = [], -WALL
    frame, out = rng.uniform(0.03, 0.1), rng.uniform(0.01, 0.04)
    for x0, x1, z0, z1 in sorted(openings):
        rows += [(x, 0, 0, x0, WALL, height), (x0, 0, z1, x1, WALL, height), (x, -0.012, 0, x0, 0, skirting)]
        rows += [(x0 - frame, -out, z0, x0, WALL, z1), (x1, -out, z0, x1 + frame, WALL, z1)]
        rows.append((x0 - frame, -out, z1, x1 + frame, WALL, z1 + frame))
        if z0 > 0:
            rows += [(x0, 0, 0, x1, WALL, z0), (x0, -0.012, 0, x1, 0, skirting)]
            rows.append((x0 - 0.05, -rng.uniform(0.03, 0.2), z0 - 0.03, x1 + 0.05, 0, z0))
            for a in np.linspace(x0, x1, rng.integers(2, 5)):
                rows.append((a - 0.03, 0.06, z0, a + 0.03, 0.11, z1))
            for a in (z0 + 0.03, z1 - 0.03, z0 + (z1 - z0) * one_of(rng, [0.35, 0.65, 1.0])):
                rows.append((x0, 0.06, a - 0.03, x1, 0.11, a + 0.03))
        x = x1
    rows += [(x, 0, 0, length + WALL, WALL, height), (x, -0.012, 0, length, 0, skirting)]
    if cornice:
        rows.append((0, -cornice, height - cornice, length, 0, height))
    for _ in range(rng.integers(1, 5)):  # sockets and switches
        at, z = rng.uniform(0.2, length - 0.2), one_of(rng, [0.3, 1.1])
        rows.append((at - 0.04, -0.012, z - 0.04, at + 0.04, 0, z + 0.04))
    return boxes([row for row in rows if row[3] > row[0] and row[5] > row[2]])


def _passage_beyond(rng: np.random.Generator, height: float) -> Solids:
    """A piece of corridor behind the wall, seen through a passage, y from WALL to about 2 m."""
    deep, half = between(rng, [0.9, 0.8], [2.5, 2.5])
    rows = [
        (-half, WALL + deep, 0, half, WALL + deep + 0.1, height),
        (-half - 0.1, WALL, 0, -half, WALL + deep, height),
        (half, WALL, 0, half + 0.1, WALL + deep, height),
    ]
    parts = [boxes(rows)]
    if rng.random() < 0.4:
        parts.append(rods(0.02, -half, WALL + deep - 0.06, 0.95, half, WALL + deep - 0.06, 0.95))
    return Solids.join(*parts)


def _at_window(rng: np.random.Generator, x: float) -> Solids:
    """A radiator below, a curtain or blinds before it, or nothing."""
    parts = []
    if rng.random() < 0.5:
        parts.append(fixtures.radiator(rng).solids.placed(pose(x)))
    kind = rng.random()
    if kind < 0.4:
        side = one_of(rng, [-1, 1])
        parts.append(fixtures.curtain(rng).solids.placed(pose(x + side * rng.uniform(0.3, 0.8))))
    elif kind < 0.55:
        parts.append(fixtures.blinds(rng).solids.placed(pose(x)))
    return Solids.join(*parts)
