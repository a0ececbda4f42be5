"""Scenes about a place: park, car park, works yard, courtyard."""

import numpy as np

from pcreg.datasets.simulated.outdoor import (
    barriers,
    buildings,
    stores,
    street_furniture,
    traffic,
    vegetation,
)
from pcreg.datasets.simulated.outdoor.ground import Road
from pcreg.datasets.simulated.outdoor.layout import PLACE_THINGS, houses, network, people, uneven_ground
from pcreg.datasets.simulated.outdoor.site import Site


def park(rng: np.random.Generator) -> Site:
    roads = network(rng, rng.uniform(1.0, 2.2), rng.integers(1, 3), 0.03)
    site = Site(rng, uneven_ground(rng, roads, slope=0.05, rough=0.05, hills=2.0), roads)
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
    houses(site, edge, 0.1, (12, 30), 14, missing=0.3, sides=(-1,))
    if rng.random() < 0.6:
        site.frontage(barriers.fence, edge, 2.0, (10, 20), depth=0.2)
    site.scatter(street_furniture.kiosk, 2, *site.area(rng.integers(0, 6), 40, 2.0))
    people(site, rng.integers(0, 10), 40)
    return site


def car_park(rng: np.random.Generator) -> Site:
    aisle = rng.uniform(2.8, 3.8)
    pitch = 2 * aisle + 10.5
    aisles = tuple(Road(y=pitch * k, half_width=aisle) for k in (0, 1, -1))
    cross = Road(x=rng.uniform(-15, 15), heading=np.pi / 2, half_width=aisle)
    site = Site(rng, uneven_ground(rng, (), slope=0.03), (aisles[0], cross, *aisles[1:]))
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
    houses(site, other, 3, (12, 30), 10, missing=0.4, sides=(-1,))
    site.frontage(rng.choice([vegetation.hedge, barriers.fence]), other, -0.5, (8, 15), depth=0.3)
    people(site, rng.integers(0, 8), 25)
    site.drive(traffic.car, aisles[0], rng.integers(0, 3), aisle * 0.5, 3)
    return site


def yard(rng: np.random.Generator) -> Site:
    roads = network(rng, rng.uniform(3, 5), rng.integers(0, 2), 0.004)
    site = Site(rng, uneven_ground(rng, (), slope=0.02, hills=0.3), roads)
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
                barriers.fence,
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
        (stores.container, 18),
        (stores.pallets, 15),
        (traffic.car, 15),
        (traffic.van, 5),
        (buildings.tank, 8),
        (street_furniture.cabinet, 8),
        (street_furniture.lamp, 8),
    ):
        x, y, _ = site.area(rng.integers(0, most), 50, 3.5)
        site.scatter(make, 3, x, y, rng.choice([0, np.pi / 2], len(x)) + rng.normal(0, 0.05, len(x)))
    people(site, rng.integers(0, 8), 40)
    return site


def court(rng: np.random.Generator) -> Site:
    """A courtyard or a campus: buildings on all sides, some over arcades, a garden between them."""
    half = rng.uniform([9, 9], [35, 30])
    ways = (
        Road(curvature=rng.uniform(-0.01, 0.01), half_width=1.0),
        Road(heading=rng.uniform(1.2, 1.9), half_width=1.0),
    )
    site = Site(
        rng, uneven_ground(rng, ways, slope=0.02, rough=rng.choice([0.0, 0.03])), ways, half.min() - 1.5
    )
    tall = rng.uniform(4, 18)
    for turn, (along, away) in enumerate([half, half[::-1], half, half[::-1]]):
        yaw = turn * np.pi / 2
        edge = Road(-away * np.sin(yaw), away * np.cos(yaw), yaw, 0.0, 0.0)
        if rng.random() < 0.12:
            continue
        if rng.random() < 0.35:
            site.put(buildings.arcade(rng, 2 * along, tall), edge.x, edge.y, yaw)
        else:
            houses(site, edge, 0.01, (6, 30), tall, sides=(1,), span=along, margin=-10)
    for make, most in PLACE_THINGS:
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
    people(site, rng.integers(0, 12), half.min())
    return site
