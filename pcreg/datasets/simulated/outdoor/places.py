"""Scenes about a place: park, car park, works yard, courtyard, hall."""

from collections.abc import Iterator

import numpy as np

from pcreg.datasets.simulated.outdoor import buildings, layout, street_furniture, traffic, vegetation
from pcreg.datasets.simulated.outdoor.ground import Ground, Road
from pcreg.datasets.simulated.outdoor.site import Site
from pcreg.datasets.simulated.solids import Solids, boxes

# Makers, and the largest number of each
# fmt: off
YARD_THINGS = (
    (street_furniture.container, 18), (street_furniture.pallets, 15), (traffic.car, 15), (traffic.van, 5),
    (buildings.tank, 8), (street_furniture.cabinet, 8), (street_furniture.lamp, 8),
)
HALL_THINGS = (
    (street_furniture.bench, 5), (street_furniture.kiosk, 5), (street_furniture.cabinet, 5),
    (street_furniture.litter_bin, 5), (street_furniture.advertising_column, 5),
)
# fmt: on


def park(rng: np.random.Generator) -> Site:
    roads = layout.network(rng, rng.uniform(1.0, 2.2), rng.integers(1, 3), 0.03)
    site = layout.site_on(rng, roads, slope=0.05, rough=0.05, hills=2.0)
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
    layout.houses(site, edge, 0.1, (12, 30), 14, missing=0.3, sides=(-1,))
    if rng.random() < 0.6:
        site.frontage(street_furniture.fence, edge, 2.0, (10, 20), depth=0.2)
    site.scatter(street_furniture.kiosk, 2, *site.area(rng.integers(0, 6), 40, 2.0))
    layout.people(site, rng.integers(0, 10), 40)
    return site


def car_park(rng: np.random.Generator) -> Site:
    aisle = rng.uniform(2.8, 3.8)
    pitch = 2 * aisle + 10.5
    aisles = tuple(Road(y=pitch * k, half_width=aisle) for k in (0, 1, -1))
    cross = Road(x=rng.uniform(-15, 15), heading=np.pi / 2, half_width=aisle)
    site = Site(rng, layout.uneven_ground(rng, (), slope=0.03), (aisles[0], cross, *aisles[1:]))
    full = rng.uniform(0.2, 0.9)
    kinds = [*[traffic.car] * 4, traffic.van]
    for road in aisles:
        for side in (-1, 1):
            for make in kinds:
                turn = rng.choice([-1, 1]) * np.pi / 2
                row = {"span": 45, "missing": 1 - full / len(kinds), "turn": turn}
                site.beside(make, road, side * (aisle + 2.6), 2.6, **row, jitter=0.15, stretch=0.06)
        site.beside(vegetation.tree, road, aisle + 5.2, 13, span=45, missing=rng.uniform(0.2, 1), models=3)
        site.beside(street_furniture.lamp, road, -aisle - 5.2, 20, span=45, missing=0.2)
    rim = Road(y=1.5 * pitch + 3, half_width=0)
    other = Road(y=-1.5 * pitch - 3, half_width=0)
    site.frontage(buildings.shed, rim, rng.uniform(1, 10), (35, 60), (0, 20), 10, span=60)
    layout.houses(site, other, 3, (12, 30), 10, missing=0.4, sides=(-1,))
    site.frontage(rng.choice([vegetation.hedge, street_furniture.fence]), other, -0.5, (8, 15), depth=0.3)
    layout.people(site, rng.integers(0, 8), 25)
    site.drive(traffic.car, aisles[0], rng.integers(0, 3), aisle * 0.5, 3)
    return site


def yard(rng: np.random.Generator) -> Site:
    roads = layout.network(rng, rng.uniform(3, 5), rng.integers(0, 2), 0.004)
    site = Site(rng, layout.uneven_ground(rng, (), slope=0.02, hills=0.3), roads)
    for road in roads:
        for side in (-1, 1):
            off = side * (road.half_width + rng.uniform(8, 20))
            site.frontage(buildings.shed, road, off, (35, 60), (5, 25), 20, setback=8)
            edge, row = side * (road.half_width + 1.5), side * (road.half_width + 5)
            site.frontage(street_furniture.fence, road, edge, (10, 20), (4, 30), 0.2, missing=0.4)
            site.beside(traffic.truck, road, row, 9, missing=0.7, turn=np.pi / 2, models=2)
        site.drive(traffic.truck, road, rng.integers(0, 2), road.half_width * 0.5, 4)
    for make, most in YARD_THINGS:
        x, y, _ = site.area(rng.integers(0, most), 50, 3.5)
        site.scatter(make, 3, x, y, rng.choice([0, np.pi / 2], len(x)) + rng.normal(0, 0.05, len(x)))
    layout.people(site, rng.integers(0, 8), 40)
    return site


def court(rng: np.random.Generator) -> Site:
    """A courtyard or a campus: buildings on all sides, some over arcades, a garden between them."""
    half = rng.uniform([9, 9], [35, 30])
    ways = (
        Road(curvature=rng.uniform(-0.01, 0.01), half_width=1.0),
        Road(heading=rng.uniform(1.2, 1.9), half_width=1.0),
    )
    site = layout.site_on(rng, ways, half.min() - 1.5, slope=0.02, rough=rng.choice([0.0, 0.03]))
    tall = rng.uniform(4, 18)
    for edge, along in _sides(half):
        if rng.random() < 0.12:
            continue
        if rng.random() < 0.35:
            site.put(buildings.arcade(rng, 2 * along, tall), edge.x, edge.y, edge.heading)
        else:
            layout.houses(site, edge, 0.01, (6, 30), tall, sides=(1,), span=along, margin=-10)
    for make, most in layout.PLACE_THINGS:
        site.scatter(make, 3, *site.area(rng.integers(0, most), half.min(), 0.6))
    for way in ways:
        if rng.random() < 0.5:
            off = way.half_width + rng.uniform(0.5, 4)
            site.frontage(vegetation.hedge, way, off, (3, 8), (1, 6), 0.5, span=half.min() - 3)
    layout.people(site, rng.integers(0, 12), half.min())
    return site


def hall(rng: np.random.Generator) -> Site:
    """A garage, a warehouse or the lobby of a large building: walls, columns, beams under a ceiling."""
    half = rng.uniform([10, 8], [32, 26])
    height = rng.choice([rng.uniform(2.4, 3.5), rng.uniform(4, 12)])
    ways = (Road(half_width=1.3), Road(x=rng.uniform(-5, 5), heading=np.pi / 2, half_width=1.3))
    site = Site(rng, Ground(), ways, half.min() - 1.5)
    for edge, along in _sides(half):
        if rng.random() < 0.5:
            wall = buildings.block(rng, 2 * along, 1.5, height)
        else:
            wall = boxes(-along, 0, -1, along, 0.3, height)
        site.put(wall, edge.x, edge.y, edge.heading)
    gap = rng.uniform([3, 3], [9, 9])
    x, y = (np.arange(-h + g / 2, h, g) for h, g in zip(half, gap, strict=True))
    deep = rng.uniform(0.15, 0.8)
    beams = [
        boxes(-half[0], -half[1], height, half[0], half[1], height + 0.3),
        boxes(x - 0.15, -half[1], height - deep, x + 0.15, half[1], height),
    ]
    if rng.random() < 0.5:
        beams.append(boxes(-half[0], y - 0.12, height - deep, half[0], y + 0.12, height))
    lights = rng.uniform(-half, half, (10, 2))
    beams.append(boxes(*(lights.T - 0.3), height - deep - 0.3, *(lights.T + 0.3), height - deep - 0.2))
    site.put(Solids.join(*beams))
    if rng.random() < 0.75:
        cx, cy = (grid.ravel() for grid in np.meshgrid(x, y))
        free = site.clear(cx, cy, 0.4)
        cx, cy = cx[free], cy[free]
        site.put(buildings.pillars(rng, rng.uniform(0.15, 0.5), cx, cy, 0, height))
    if height > 4.5:  # galleries along some walls
        for side in rng.permutation([-1, 1])[: rng.integers(0, 3)]:
            level, gallery = rng.uniform([2.6, 1.5], [4.0, 5.0])
            rim = side * (half[1] - gallery)
            low, high = np.sort([side * half[1], rim])
            site.put(boxes(-half[0], low, level, half[0], high, level + 0.3))
            site.put(boxes(-half[0], rim - 0.03, level, half[0], rim + 0.03, level + 1.2))
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
    for make, most in HALL_THINGS:
        site.scatter(make, 2, *site.area(rng.integers(0, most), half.min() - 1, 0.8))
    layout.people(site, rng.integers(0, 8), half.min() - 1)
    return site


def _sides(half: np.ndarray) -> Iterator[tuple[Road, float]]:
    """The four sides of a rectangle with these half edges (2,): a road along each, and its half length."""
    for turn, (along, away) in enumerate([half, half[::-1], half, half[::-1]]):
        yaw = turn * np.pi / 2
        yield Road(-away * np.sin(yaw), away * np.cos(yaw), yaw, 0.0, 0.0), along
