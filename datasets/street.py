"""Outdoor scenes of many kinds, and a few halls, drawn from a seeded generator.

World frame: z up, metres, the middle of the scene at the origin, the main way through it. A kind of
scene is one function of the generator; a new one is one more function.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from datasets import buildings, street_furniture, traffic, vegetation
from datasets.ground import Ground, Road
from datasets.site import Scene, Site
from datasets.solids import Solids, box, rod
from datasets.things import Things


def outdoor_scene(rng: np.random.Generator, kind: str | None = None) -> Scene:
    """A scene of one of KINDS, or a random one."""
    name = str(rng.choice(list(KINDS), p=_SHARES)) if kind is None else kind
    return KINDS[name](rng).scene(name)


def _old_town(rng: np.random.Generator) -> Site:
    roads = _network(rng, rng.uniform(1.8, 3.5), rng.integers(1, 4), 0.012)
    pavement = rng.uniform(0.3, 1.8)
    site = Site(rng, _ground(rng, roads, kerb=rng.choice([0.0, 0.08]), slope=0.06, rough=0.01), roads)
    tall = rng.uniform(6, 14)
    for road in roads:
        _houses(
            site, road, road.half_width + pavement, (5, 14), tall, missing=0.03, setback=rng.uniform(0, 1.0)
        )
        edge = road.half_width + 0.15
        _small_things(site, road, edge)
        if road.half_width > 2.8:
            _parked(site, road, road.half_width - 0.8, missing=0.8)
        site.drive(traffic.person, road, rng.integers(1, 6), road.half_width * 0.8, 1.4)
    site.drive(traffic.car, roads[0], rng.integers(0, 2), 1.0, 4)
    return site


def _city(rng: np.random.Generator) -> Site:
    half, pavement = rng.uniform([4.5, 1.8], [9, 5])
    roads = _network(rng, half, rng.integers(1, 3), 0.006)
    site = Site(rng, _ground(rng, roads, kerb=rng.uniform(0.08, 0.18), slope=0.04, rough=0.01), roads)
    tall = rng.uniform(8, 22)
    for road in roads:
        _houses(
            site,
            road,
            road.half_width + pavement,
            (8, 35),
            tall,
            missing=rng.uniform(0, 0.3),
            setback=rng.uniform(0, 2),
        )
        edge = road.half_width + 0.5
        for side in (-1, 1):
            if rng.random() < 0.6:
                site.beside(vegetation.tree, road, side * (edge + 0.5), rng.uniform(6, 15), models=3)
            site.beside(street_furniture.lamp, road, side * edge, rng.uniform(15, 30), missing=0.1, loose=0.1)
            if rng.random() < 0.5:
                site.beside(street_furniture.bus_stop, road, side * (edge + 1), 80, missing=0.3)
        _small_things(site, road, edge)
        _parked(site, road, road.half_width - 1.0, missing=rng.uniform(0.1, 0.9))
        _vehicles(site, road, rng.integers(1, 8), road.half_width * 0.45, 9)
        site.drive(traffic.person, road, rng.integers(2, 10), edge + pavement * 0.4, 1.4)
    _traffic_lights(site)
    return site


def _square(rng: np.random.Generator) -> Site:
    """A wide place with buildings round about and streets that lead off."""
    roads = _network(rng, rng.uniform(3.5, 6), rng.integers(1, 3), 0.012)
    site = Site(rng, _ground(rng, roads, kerb=rng.choice([0.0, 0.1]), slope=0.03, rough=0.01), roads)
    radius = rng.uniform(22, 55)
    ring = Road(x=radius, y=0.0, heading=np.pi / 2, curvature=1 / radius, half_width=0.0)
    tall = rng.uniform(10, 22)
    around = partial(_house_of, tall)
    for sector in _sectors(rng):
        middle = np.array(sector) * radius
        if rng.random() < 0.9:
            site.frontage(
                around,
                _shifted(ring, middle.mean()),
                -0.1,
                (8, 30),
                span=np.ptp(middle) / 2,
                margin=rng.uniform(2, 6),
            )
    for road in roads:
        site.drive(traffic.car, road, rng.integers(1, 5), road.half_width * 0.5, 7)
    for make, most in _PLACE_THINGS:
        site.scatter(make, 3, *site.area(rng.integers(0, 2 * most), radius * 0.8, 1.0))
    _people(site, rng.integers(3, 30), radius * 0.8)
    for road in roads:
        _small_things(site, road, road.half_width + 0.5)
        _parked(site, road, road.half_width - 0.9, missing=0.8)
    return site


def _suburb(rng: np.random.Generator) -> Site:
    roads = _network(rng, rng.uniform(2.7, 4.5), rng.integers(0, 3), 0.012)
    site = Site(rng, _ground(rng, roads, kerb=rng.choice([0.0, 0.1]), slope=0.07, rough=0.03), roads)
    pavement = rng.uniform(0.5, 2.5)
    for road in roads:
        lot = road.half_width + pavement
        for side in (-1, 1):
            site.frontage(_any_house, road, side * (lot + rng.uniform(2, 6)), (14, 22), (1, 8), 12, setback=4)
            border = rng.choice([street_furniture.fence, buildings.garden_wall, vegetation.hedge])
            site.frontage(border, road, side * lot, (8, 16), (2, 4), 0.5, missing=rng.uniform(0, 0.5))
            mixed = rng.choice([street_furniture.fence, vegetation.hedge, buildings.garden_wall])
            site.frontage(mixed, road, side * (lot + 0.1), (5, 12), (5, 20), 0.5, missing=0.4)
            site.beside(vegetation.tree, road, side * (lot + 2.5), 9, missing=0.5, models=3, loose=4)
            site.beside(vegetation.bush, road, side * (lot + 1.5), 4, missing=0.6, models=3, loose=3)
            site.beside(traffic.car, road, side * (lot + 3), 22, missing=0.5, turn=np.pi / 2, models=2)
            site.beside(street_furniture.litter_bin, road, side * (lot - 0.4), 15, missing=0.6)
        pole = rng.choice([street_furniture.lamp, street_furniture.utility_pole])
        site.beside(pole, road, rng.choice([-1, 1]) * (lot - 0.3), rng.uniform(20, 35), missing=0)
        _parked(site, road, road.half_width - 0.9, missing=rng.uniform(0.5, 0.95))
        site.drive(traffic.car, road, rng.integers(0, 4), road.half_width * 0.5, 8)
        site.drive(traffic.person, road, rng.integers(0, 3), lot - 0.5, 1.4)
    site.scatter(vegetation.tree, 3, *site.area(40, 70, 8))
    return site


def _highway(rng: np.random.Generator) -> Site:
    half = rng.uniform(9, 16)
    road = Road(curvature=rng.uniform(-0.003, 0.003), half_width=half)
    bank = (rng.uniform(2, 5), rng.uniform(8, 20), rng.uniform(-4, 5))
    ground = _ground(rng, (road,), slope=0.03, rough=0.06, bank=bank)
    site = Site(rng, ground, (road,))
    if rng.random() < 0.8:
        site.frontage(street_furniture.guard_rail, road, 0.3, (12, 12), depth=0.1)
        site.frontage(street_furniture.guard_rail, road, -0.3, (12, 12), depth=0.1)
    for side in (-1, 1):
        if rng.random() < 0.7:
            site.frontage(street_furniture.guard_rail, road, side * (half + 0.6), (12, 12), depth=0.1)
        match rng.integers(4):
            case 0:
                site.frontage(
                    street_furniture.noise_barrier, road, side * (half + bank[0]), (20, 40), depth=0.1
                )
            case 1:
                _houses(site, road, half + bank[1] + 5, (15, 40), 12, missing=0.5, sides=(side,))
            case _:
                site.beside(
                    vegetation.tree, road, side * (half + bank[1]), rng.uniform(4, 10), models=4, loose=8
                )
        site.beside(
            vegetation.bush,
            road,
            side * (half + bank[0] + 1),
            3,
            missing=rng.uniform(0.3, 1),
            models=3,
            loose=5,
        )
        site.beside(street_furniture.sign, road, side * (half + 1.2), 25, missing=0.4, turn=np.pi / 2)
    if rng.random() < 0.6:
        site.beside(street_furniture.lamp, road, half + 1.5, rng.uniform(20, 40), missing=0, loose=0)
    over = [street_furniture.bridge, street_furniture.gantry]
    for station in rng.uniform(-80, 80, rng.integers(0, 3)):
        x, y, yaw = road.at(station)
        site.put(rng.choice(over)(rng, 2 * half + 4), x, y, yaw)
    for lane in (0.25, 0.5, 0.8):
        _vehicles(site, road, rng.integers(1, 5), half * lane, 25)
    return site


def _park(rng: np.random.Generator) -> Site:
    roads = _network(rng, rng.uniform(1.0, 2.2), rng.integers(1, 3), 0.03)
    site = Site(rng, _ground(rng, roads, slope=0.05, rough=0.05, hills=2.0), roads)
    radius = rng.uniform(45, 80)
    site.scatter(vegetation.tree, 6, *site.area(rng.integers(20, 90), radius, 1.0), stretch=0.3)
    site.scatter(vegetation.bush, 4, *site.area(rng.integers(10, 60), radius, 0.5), stretch=0.4)
    for road in roads:
        site.beside(street_furniture.bench, road, road.half_width + 0.6, 15, missing=0.4)
        site.beside(street_furniture.lamp, road, -road.half_width - 0.4, rng.uniform(15, 25), missing=0.1)
        site.beside(street_furniture.litter_bin, road, road.half_width + 0.6, 25)
        site.drive(traffic.person, road, rng.integers(1, 5), 0.5, 1.4)
        site.drive(traffic.cyclist, road, rng.integers(0, 3), 0.7, 4)
        if rng.random() < 0.4:
            site.frontage(vegetation.hedge, road, -road.half_width - 1.0, (6, 15), (2, 10), 0.5)
    edge = Road(y=-radius * 0.6, curvature=rng.uniform(-0.004, 0.004), half_width=0)
    _houses(site, edge, 0.1, (12, 30), 14, missing=0.3, sides=(-1,))
    if rng.random() < 0.6:
        site.frontage(street_furniture.fence, edge, 2.0, (10, 20), depth=0.2)
    site.scatter(street_furniture.kiosk, 2, *site.area(rng.integers(0, 6), 40, 2.0))
    _people(site, rng.integers(0, 10), 40)
    return site


def _country(rng: np.random.Generator) -> Site:
    roads = _network(rng, rng.uniform(2.2, 3.8), rng.integers(0, 2), 0.008)
    bank = (rng.uniform(0.5, 2), rng.uniform(2.5, 6), rng.uniform(-1.2, 1.5))
    site = Site(rng, _ground(rng, roads, slope=0.09, rough=0.07, bank=bank, hills=1.5), roads)
    for road in roads:
        for side in (-1, 1):
            off = side * (road.half_width + bank[1])
            site.beside(
                vegetation.tree, road, off, rng.uniform(5, 14), missing=rng.uniform(0.1, 1), models=4, loose=6
            )
            site.beside(vegetation.bush, road, off, 4, missing=rng.uniform(0.3, 1), models=4, loose=5)
            if rng.random() < 0.5:
                site.frontage(street_furniture.fence, road, off * 1.1, (10, 20), (0, 10), 0.2)
            site.frontage(
                _any_house,
                road,
                side * (road.half_width + 12),
                (14, 22),
                (10, 60),
                12,
                missing=0.5,
                setback=15,
            )
            site.beside(street_furniture.bollard, road, side * (road.half_width + 0.6), 25, missing=0.2)
        if rng.random() < 0.7:
            site.beside(street_furniture.utility_pole, road, road.half_width + bank[1] + 1, 30, missing=0)
        _vehicles(site, road, rng.integers(0, 3), road.half_width * 0.5, 15)
    site.scatter(vegetation.tree, 4, *site.area(rng.integers(5, 60), 85, 8), stretch=0.3)
    return site


def _car_park(rng: np.random.Generator) -> Site:
    aisle = rng.uniform(2.8, 3.8)
    pitch = 2 * aisle + 10.5
    aisles = tuple(Road(y=pitch * k, half_width=aisle) for k in (0, 1, -1))
    cross = Road(x=rng.uniform(-15, 15), heading=np.pi / 2, half_width=aisle)
    site = Site(rng, _ground(rng, (), slope=0.03), (aisles[0], cross, *aisles[1:]))
    full = rng.uniform(0.2, 0.9)
    kinds = [traffic.car, traffic.car, traffic.car, traffic.car, traffic.van]
    for road in aisles:
        for side in (-1, 1):
            for make in kinds:
                site.beside(
                    make,
                    road,
                    side * (aisle + 2.6),
                    2.6,
                    span=45,
                    missing=1 - full / len(kinds),
                    models=2,
                    turn=rng.choice([-1, 1]) * np.pi / 2,
                    loose=0.15,
                    stretch=0.06,
                )
        site.beside(vegetation.tree, road, aisle + 5.2, 13, span=45, missing=rng.uniform(0.2, 1), models=3)
        site.beside(street_furniture.lamp, road, -aisle - 5.2, 20, span=45, missing=0.2)
    rim = Road(y=1.5 * pitch + 3, half_width=0)
    other = Road(y=-1.5 * pitch - 3, half_width=0)
    site.frontage(lambda r, w: buildings.shed(r), rim, rng.uniform(1, 10), (35, 60), (0, 20), 10, span=60)
    _houses(site, other, 3, (12, 30), 10, missing=0.4, sides=(-1,))
    site.frontage(rng.choice([vegetation.hedge, street_furniture.fence]), other, -0.5, (8, 15), depth=0.3)
    _people(site, rng.integers(0, 8), 25)
    site.drive(traffic.car, aisles[0], rng.integers(0, 3), aisle * 0.5, 3)
    return site


def _yard(rng: np.random.Generator) -> Site:
    roads = _network(rng, rng.uniform(3, 5), rng.integers(0, 2), 0.004)
    site = Site(rng, _ground(rng, (), slope=0.02, hills=0.3), roads)
    for road in roads:
        for side in (-1, 1):
            site.frontage(
                lambda r, w: buildings.shed(r),
                road,
                side * (road.half_width + rng.uniform(8, 20)),
                (35, 60),
                (5, 25),
                20,
                setback=8,
            )
            site.frontage(
                street_furniture.fence,
                road,
                side * (road.half_width + 1.5),
                (10, 20),
                (4, 30),
                0.2,
                missing=0.4,
            )
            site.beside(
                traffic.truck, road, side * (road.half_width + 5), 9, missing=0.7, turn=np.pi / 2, models=2
            )
        site.drive(traffic.truck, road, rng.integers(0, 2), road.half_width * 0.5, 4)
    for make, most in (
        (street_furniture.container, 18),
        (street_furniture.pallets, 15),
        (traffic.car, 15),
        (traffic.van, 5),
        (buildings.tank, 8),
        (street_furniture.cabinet, 8),
        (street_furniture.lamp, 8),
    ):
        x, y, _ = site.area(rng.integers(0, most), 50, 3.5)
        site.scatter(make, 3, x, y, rng.choice([0, np.pi / 2], len(x)) + rng.normal(0, 0.05, len(x)))
    _people(site, rng.integers(0, 8), 40)
    return site


def _court(rng: np.random.Generator) -> Site:
    """A courtyard or a campus: buildings on all sides, some over arcades, a garden between them."""
    half = rng.uniform([9, 9], [35, 30])
    ways = (
        Road(curvature=rng.uniform(-0.01, 0.01), half_width=1.0),
        Road(heading=rng.uniform(1.2, 1.9), half_width=1.0),
    )
    site = Site(rng, _ground(rng, ways, slope=0.02, rough=rng.choice([0.0, 0.03])), ways, half.min() - 1.5)
    tall = rng.uniform(4, 18)
    for turn, (along, away) in enumerate([half, half[::-1], half, half[::-1]]):
        yaw = turn * np.pi / 2
        edge = Road(-away * np.sin(yaw), away * np.cos(yaw), yaw, 0.0, 0.0)
        if rng.random() < 0.12:
            continue
        if rng.random() < 0.35:
            site.put(buildings.arcade(rng, 2 * along, tall), edge.x, edge.y, yaw)
        else:
            _houses(site, edge, 0.01, (6, 30), tall, sides=(1,), span=along, margin=-10)
    for make, most in _PLACE_THINGS:
        site.scatter(make, 3, *site.area(rng.integers(0, most), half.min(), 0.6))
    for way in ways:
        if rng.random() < 0.5:
            site.frontage(
                vegetation.hedge,
                way,
                way.half_width + rng.uniform(0.5, 4),
                (3, 8),
                (1, 6),
                0.5,
                span=half.min() - 3,
            )
    _people(site, rng.integers(0, 12), half.min())
    return site


def _hall(rng: np.random.Generator) -> Site:
    """A garage, a warehouse or the lobby of a large building: walls, columns, beams under a ceiling."""
    half = rng.uniform([10, 8], [32, 26])
    height = rng.choice([rng.uniform(2.4, 3.5), rng.uniform(4, 12)])
    ways = (Road(half_width=1.3), Road(x=rng.uniform(-5, 5), heading=np.pi / 2, half_width=1.3))
    site = Site(rng, Ground(), ways, half.min() - 1.5)
    for turn, (along, away) in enumerate([half, half[::-1], half, half[::-1]]):
        yaw = turn * np.pi / 2
        if rng.random() < 0.5:
            wall = buildings.block(rng, 2 * along, 1.5, height)
        else:
            wall = Things.of(box([-along, 0, -1], [along, 0.3, height]))
        site.put(wall, -away * np.sin(yaw), away * np.cos(yaw), yaw)
    gap = rng.uniform([3, 3], [9, 9])
    x, y = (np.arange(-h + g / 2, h, g) for h, g in zip(half, gap, strict=True))
    deep = rng.uniform(0.15, 0.8)
    beams = [
        box([-half[0], -half[1], height], [half[0], half[1], height + 0.3]),
        box(
            np.c_[x - 0.15, 0 * x - half[1], 0 * x + height - deep],
            np.c_[x + 0.15, 0 * x + half[1], 0 * x + height],
        ),
    ]
    if rng.random() < 0.5:
        beams.append(
            box(
                np.c_[0 * y - half[0], y - 0.12, 0 * y + height - deep],
                np.c_[0 * y + half[0], y + 0.12, 0 * y + height],
            )
        )
    lights = rng.uniform(-half, half, (10, 2))
    beams.append(
        box(
            np.c_[lights - 0.3, 0 * lights[:, :1] + height - deep - 0.3],
            np.c_[lights + 0.3, 0 * lights[:, :1] + height - deep - 0.2],
        )
    )
    site.put(Things.of(Solids.join(beams)), 0.0, 0.0, 0.0)
    if rng.random() < 0.75:
        cx, cy = (grid.ravel() for grid in np.meshgrid(x, y))
        free = site.clear(cx, cy, 0.4)
        cx, cy = cx[free], cy[free]
        r = rng.uniform(0.15, 0.5)
        foot = np.c_[cx, cy, 0 * cx]
        columns = (
            rod(r, foot, foot + np.array([0, 0, height]))
            if rng.random() < 0.5
            else box(foot - [r, r, 0], foot + np.array([r, r, height]))
        )
        site.put(Things.of(columns), 0.0, 0.0, 0.0)
    if height > 4.5:  # galleries along some walls
        for side in rng.permutation([-1, 1])[: rng.integers(0, 3)]:
            level, reach = rng.uniform([2.6, 1.5], [4.0, 5.0])
            low, high = np.sort([side * half[1], side * (half[1] - reach)])
            site.put(Things.of(box([-half[0], low, level], [half[0], high, level + 0.3])), 0.0, 0.0, 0.0)
            rim = side * (half[1] - reach)
            site.put(
                Things.of(box([-half[0], rim - 0.03, level], [half[0], rim + 0.03, level + 1.2])),
                0.0,
                0.0,
                0.0,
            )
    contents = rng.integers(3)
    n = rng.integers(3, 30)
    px, py = rng.uniform(-half + 2, half - 2, (n, 2)).T
    free = site.clear(px, py, 2.4)
    px, py = px[free], py[free]
    turn = rng.choice([0, np.pi / 2], len(px))
    if contents == 0:
        site.scatter(traffic.car, 4, px, py, turn)
    elif contents == 1:
        site.scatter(street_furniture.rack, 3, px[:8], py[:8], turn[:8] * 0)
        site.scatter(street_furniture.pallets, 4, px[8:], py[8:], turn[8:])
    for make in (
        street_furniture.bench,
        street_furniture.kiosk,
        street_furniture.cabinet,
        street_furniture.litter_bin,
        street_furniture.advertising_column,
    ):
        site.scatter(make, 2, *site.area(rng.integers(0, 5), half.min() - 1, 0.8))
    _people(site, rng.integers(0, 8), half.min() - 1)
    return site


KINDS: dict[str, Callable[[np.random.Generator], Site]] = {
    "old town": _old_town,
    "city": _city,
    "square": _square,
    "suburb": _suburb,
    "highway": _highway,
    "park": _park,
    "country": _country,
    "car park": _car_park,
    "yard": _yard,
    "court": _court,
    "hall": _hall,
}
_SHARES = np.array([3, 5, 4, 3, 2, 2, 2, 2, 2, 3, 4]) / 32
_PLACE_THINGS = (
    (vegetation.tree, 16),
    (vegetation.bush, 12),
    (street_furniture.bench, 10),
    (street_furniture.lamp, 8),
    (street_furniture.kiosk, 5),
    (street_furniture.advertising_column, 4),
    (street_furniture.bollard, 20),
    (street_furniture.litter_bin, 8),
    (street_furniture.sign, 6),
    (traffic.bicycle, 10),
    (traffic.car, 6),
)


def _network(rng: np.random.Generator, half_width: float, crossings: int, bend: float) -> tuple[Road, ...]:
    """A main road and others that cross it, each with its station 0 on the main one."""
    main = Road(curvature=rng.uniform(-bend, bend), half_width=half_width)
    roads = [main]
    stations = rng.permutation([-55.0, 0.0, 45.0])[:crossings] + rng.uniform(-15, 15, crossings)
    for station in stations:
        x, y, heading = main.at(station)
        roads.append(
            Road(
                float(x),
                float(y),
                float(heading) + rng.uniform(np.pi / 3, 2 * np.pi / 3),
                rng.uniform(-bend, bend),
                half_width * rng.uniform(0.7, 1.1),
            )
        )
    return tuple(roads)


def _ground(
    rng: np.random.Generator,
    roads: tuple[Road, ...],
    kerb: float = 0.0,
    slope: float = 0.0,
    rough: float = 0.0,
    bank: tuple[float, float, float] = (1.0, 2.0, 0.0),
    hills: float = 0.2,
) -> Ground:
    def waves(n: int, height: float, length: tuple[float, float]) -> np.ndarray:
        wave, angle = rng.uniform(*length, n), rng.uniform(0, 2 * np.pi, n)
        k = 2 * np.pi / wave
        return np.stack(
            [
                height * rng.uniform(0, 1, n),
                k * np.cos(angle),
                k * np.sin(angle),
                rng.uniform(0, 2 * np.pi, n),
            ],
            1,
        )

    return Ground(
        roads=roads,
        slope=tuple(rng.normal(0, slope / 2, 2).clip(-slope, slope)),
        waves=np.concatenate([waves(2, hills, (60, 150)), waves(1, 0.04, (8, 25))]),
        kerb=kerb,
        camber=rng.choice([0.0, 0.02]),
        bank=bank,
        rough=waves(3, rough, (0.7, 4)) if rough else np.empty((0, 4)),
    )


def _house_of(tall: float, rng: np.random.Generator, width: float) -> Things:
    return buildings.block(rng, width, rng.uniform(7, 14), tall * rng.uniform(0.7, 1.3))


def _any_house(rng: np.random.Generator, width: float) -> Things:
    return buildings.house(rng)


def _houses(
    site: Site, road: Road, offset: float, widths: tuple[float, float], tall: float, sides=(-1, 1), **row
) -> None:
    for side in sides:
        site.frontage(partial(_house_of, tall), road, side * offset, widths, **row)


def _parked(site: Site, road: Road, offset: float, missing: float) -> None:
    for side in (-1, 1):
        turn = 0.0 if site.rng.random() < 0.8 else site.rng.uniform(0.5, 1.5)
        site.beside(
            traffic.car,
            road,
            side * offset,
            5.6,
            missing=missing,
            models=4,
            turn=turn,
            stretch=0.06,
            margin=3,
        )
        site.beside(
            site.rng.choice([traffic.van, traffic.truck]),
            road,
            side * offset,
            40,
            missing=0.6,
            turn=turn,
            margin=4,
            models=1,
        )


def _vehicles(site: Site, road: Road, n: int, offset: float, speed: float) -> None:
    for _ in range(n):
        make = site.rng.choice(
            [traffic.car, traffic.car, traffic.car, traffic.van, traffic.bus, traffic.truck, traffic.cyclist]
        )
        site.drive(make, road, 1, offset, speed)


def _people(site: Site, n: int, radius: float) -> None:
    """Some stand, some walk on lines of their own."""
    x, y, yaw = site.area(n, radius, 0.3)
    walking = site.rng.random(len(x)) < 0.5
    site.scatter(traffic.person, 3, x[~walking], y[~walking], yaw[~walking], 0.08)
    for at in np.flatnonzero(walking):
        site.drive(traffic.person, Road(x[at], y[at], yaw[at]), 1, 0.0, 1.3)


def _small_things(site: Site, road: Road, edge: float) -> None:
    """Signs, bollards, bins, cabinets and bicycles at the kerb, fewer or more."""
    for make, gap in (
        (street_furniture.sign, 14),
        (street_furniture.bollard, 4),
        (street_furniture.litter_bin, 20),
        (street_furniture.cabinet, 25),
        (street_furniture.kiosk, 60),
        (street_furniture.advertising_column, 60),
        (traffic.bicycle, 5),
        (vegetation.bush, 10),
    ):
        for side in (-1, 1):
            site.beside(
                make,
                road,
                side * edge,
                gap,
                missing=site.rng.uniform(0.4, 1.2),
                models=1,
                turn=site.rng.choice([0.0, np.pi / 2]),
            )


def _traffic_lights(site: Site) -> None:
    main = site.roads[0]
    for other in site.roads[1:]:
        for side in (-1, 1):
            for across in (-1, 1):
                x, y, yaw = other.at(side * (main.half_width + 1), across * (other.half_width + 0.7))
                if site.rng.random() < 0.7:
                    site.put(
                        street_furniture.traffic_light(site.rng), x, y, yaw + (np.pi if across < 0 else 0)
                    )


def _sectors(rng: np.random.Generator) -> list[tuple[float, float]]:
    cuts = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(2, 6)))
    return list(zip(cuts, [*cuts[1:], cuts[0] + 2 * np.pi], strict=True))


def _shifted(road: Road, station: float) -> Road:
    """The same road, its station 0 further along."""
    x, y, heading = road.at(station)
    return Road(float(x), float(y), float(heading), road.curvature, road.half_width)
