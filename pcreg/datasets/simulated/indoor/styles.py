"""Kinds of rooms, and the furniture in them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from pcreg.datasets.simulated.indoor import fixtures, kitchen, seats, storage
from pcreg.datasets.simulated.indoor.clutter import clutter
from pcreg.datasets.simulated.indoor.piece import Piece, between, extent, one_of, pose
from pcreg.datasets.simulated.solids import Solids

Maker = Callable[[np.random.Generator], Piece]


@dataclass(frozen=True)
class Style:
    """Furniture of a kind of room; a piece named twice is twice as frequent."""

    wall: list[Maker]
    free: list[Maker]
    size: tuple[float, float, float, float]  # width from, to; depth from, to
    full: float  # share of the walls with something before them


def furnished(style: Style, rng: np.random.Generator) -> Style:
    """The style with one fixed piece of each kind, which is drawn now."""

    def one(maker: Maker) -> Maker:
        piece = maker(rng)
        return lambda _: piece

    return replace(style, wall=list(map(one, style.wall)), free=list(map(one, style.free)))


def laden(rng: np.random.Generator, piece: Piece, load: float) -> Piece:
    """The piece with small things on it, on average `load` per square metre."""
    things = []
    for x0, y0, x1, y1, z in piece.tops:
        area = (x1 - x0) * (y1 - y0)
        margin = min(0.08, (x1 - x0) / 3, (y1 - y0) / 3)
        for _ in range(min(rng.poisson(area * load), 24)):
            at = between(rng, [x0 + margin, y0 + margin], [x1 - margin, y1 - margin])
            things.append(clutter(rng, one_of(rng, [0.15, 0.3, 0.45])).placed(pose(*at, z)))
    return piece.carrying(things)


def dining(rng: np.random.Generator) -> Piece:
    """A table with chairs of one kind around it."""
    piece, chair = storage.table(rng), seats.chair(rng).solids
    low, high = extent(piece.solids)
    parts = []
    for _ in range(rng.integers(1, 7)):
        side, along = one_of(rng, [-1, 1]), rng.uniform(low[0] + 0.15, high[0] - 0.15)
        away = side * (high[1] + rng.uniform(-0.1, 0.35))
        parts.append(chair.placed(pose(along, away, 0, (0 if side > 0 else 180) + rng.normal(0, 15))))
    return piece.carrying(parts)


def chair_rows(rng: np.random.Generator) -> Piece:
    """Rows of one kind of chair, as in a lecture room."""
    maker = (seats.chair, seats.chair, seats.stool)[rng.integers(3)]
    chair, step = maker(rng).solids, between(rng, [0.5, 0.75], [0.65, 1.0])
    columns, rows = rng.integers(2, 6), rng.integers(1, 5)
    places = [
        pose((c - columns / 2) * step[0], (r - rows / 2) * step[1], 0, rng.normal(0, 4))
        for c, r in product(range(columns), range(rows))
    ]
    return Piece(chair.copies(np.stack(places)))


def desk_rows(rng: np.random.Generator) -> Piece:
    """Two desks face to face, or one behind the other, each with its chair."""
    piece = storage.desk(rng)
    seat = seats.office_chair(rng).solids
    one = Solids.join(laden(rng, piece, 6).solids, seat.placed(pose(0, -1.1, 0, 180)))
    two = Solids.join(laden(rng, piece, 6).solids, seat.placed(pose(0.1, -1.15, 0, 200)))
    turn = pose(0, 0.02, 0, 180) if rng.random() < 0.7 else pose(0, 1.6)
    return Piece(Solids.join(one, two.placed(turn)))


# fmt: off
WALL_PIECES = [
    *[fixtures.pictures] * 2, fixtures.pipes, fixtures.door, *[storage.wall_shelf] * 2, storage.coat_hooks
]
_COMMON = [
    storage.shelf, storage.cabinet, fixtures.column, fixtures.bin, fixtures.big_plant, fixtures.floor_lamp,
    storage.carton_stack, seats.chair, fixtures.big_thing,
]
_ODD = [fixtures.easel, fixtures.figure, fixtures.big_thing, fixtures.bin, seats.stool, fixtures.big_plant]

STYLES = [
    Style(  # kitchen
        [*_COMMON, *[kitchen.counter] * 9, *[kitchen.fridge] * 2, *[kitchen.machine] * 2,
         kitchen.microwave_stand],
        [dining, dining, seats.stool, *_ODD],
        (2.5, 4.5, 2.5, 5.0), 0.95,
    ),
    Style(  # office
        [*_COMMON, *[storage.desk] * 6, *[storage.shelf] * 3, storage.cabinet],
        [desk_rows, desk_rows, seats.office_chair, storage.table, *_ODD],
        (2.8, 6.0, 2.8, 7.0), 0.85,
    ),
    Style(  # bedroom
        [*_COMMON, *[seats.bed] * 4, *[storage.bedside] * 2, storage.cabinet, storage.desk,
         storage.rack_with_clothes],
        [seats.chair, seats.sofa, storage.low_table, *_ODD],
        (2.7, 4.5, 2.7, 5.0), 0.85,
    ),
    Style(  # living room
        [*_COMMON, *[seats.sofa] * 4, *[fixtures.television] * 2, storage.piano, fixtures.fireplace,
         storage.shelf],
        [dining, *[storage.low_table] * 2, seats.sofa, *_ODD],
        (3.0, 6.5, 3.0, 6.5), 0.8,
    ),
    Style(  # bathroom
        [*[kitchen.toilet] * 2, *[kitchen.washbasin] * 2, kitchen.bath, kitchen.machine, storage.cabinet,
         kitchen.towel_rail, fixtures.bin, storage.shelf],
        [seats.stool, fixtures.bin, fixtures.big_thing],
        (2.0, 3.5, 2.2, 4.0), 0.85,
    ),
    Style(  # lecture room
        [*_COMMON, seats.bench, storage.piano, fixtures.railing],
        [*[chair_rows] * 3, storage.table, fixtures.easel, seats.office_chair],
        (4.5, 8.5, 4.5, 8.5), 0.5,
    ),
    Style(  # one-room flat
        [*_COMMON, *[seats.bed] * 2, storage.bedside, storage.desk, fixtures.television, seats.sofa,
         kitchen.fridge],
        [seats.sofa, storage.low_table, seats.office_chair, *_ODD],
        (3.2, 4.5, 4.0, 6.5), 0.8,
    ),
    Style(  # corridor
        [fixtures.railing, seats.bench, storage.cabinet, fixtures.radiator, fixtures.column,
         fixtures.big_plant, storage.coat_hooks, fixtures.stairs, storage.shelf, fixtures.bin, fixtures.door,
         fixtures.bicycle],
        [fixtures.big_thing],
        (1.5, 2.6, 5.0, 9.0), 0.5,
    ),
    Style(  # lounge
        [*_COMMON, *[seats.sofa] * 2, *[seats.chair] * 2, seats.bench, fixtures.stairs, fixtures.fireplace],
        [seats.sofa, seats.sofa, storage.low_table, dining, chair_rows, *_ODD],
        (4.0, 8.0, 4.0, 8.0), 0.7,
    ),
    Style(  # storeroom
        [*_COMMON, *[storage.carton_stack] * 3, *[storage.shelf] * 3, *[fixtures.ladder] * 2,
         fixtures.bicycle, storage.rack_with_clothes, kitchen.machine],
        [fixtures.bicycle, fixtures.ladder, storage.table, fixtures.big_thing, *_ODD],
        (2.5, 4.5, 2.5, 6.0), 0.9,
    ),
]
# fmt: on
