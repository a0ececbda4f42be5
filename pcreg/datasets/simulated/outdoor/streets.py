"""Scenes along roads: old town, city, square, suburb, highway, country."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from pcreg.datasets.simulated.outdoor import buildings, layout, street_furniture, traffic, vegetation
from pcreg.datasets.simulated.outdoor.ground import Road
from pcreg.datasets.simulated.outdoor.site import Site


def old_town(rng: np.random.Generator) -> Site:
    roads = layout.network(rng, rng.uniform(1.8, 3.5), rng.integers(1, 4), 0.012)
    pavement = rng.uniform(0.3, 1.8)
    site = layout.site_on(rng, roads, kerb=rng.choice([0.0, 0.08]), slope=0.06, rough=0.01)
    tall = rng.uniform(6, 14)
    for road in roads:
        front, edge = road.half_width + pavement, road.half_width + 0.15
        layout.houses(site, road, front, (5, 14), tall, missing=0.03, setback=rng.uniform(0, 1.0))
        layout.small_things(site, road, edge)
        if road.half_width > 2.8:
            layout.parked(site, road, road.half_width - 0.8, missing=0.8)
        site.drive(traffic.person, road, rng.integers(1, 6), road.half_width * 0.8, 1.4)
    site.drive(traffic.car, roads[0], rng.integers(0, 2), 1.0, 4)
    return site


def city(rng: np.random.Generator) -> Site:
    half, pavement = rng.uniform([4.5, 1.8], [9, 5])
    roads = layout.network(rng, half, rng.integers(1, 3), 0.006)
    site = layout.site_on(rng, roads, kerb=rng.uniform(0.08, 0.18), slope=0.04, rough=0.01)
    tall = rng.uniform(8, 22)
    for road in roads:
        front, missing = road.half_width + pavement, rng.uniform(0, 0.3)
        layout.houses(site, road, front, (8, 35), tall, missing=missing, setback=rng.uniform(0, 2))
        edge = road.half_width + 0.5
        for side in (-1, 1):
            if rng.random() < 0.6:
                site.beside(vegetation.tree, road, side * (edge + 0.5), rng.uniform(6, 15), models=3)
            gap = rng.uniform(15, 30)
            site.beside(street_furniture.lamp, road, side * edge, gap, missing=0.1, jitter=0.1)
            if rng.random() < 0.5:
                site.beside(street_furniture.bus_stop, road, side * (edge + 1), 80, missing=0.3)
        layout.small_things(site, road, edge)
        layout.parked(site, road, road.half_width - 1.0, missing=rng.uniform(0.1, 0.9))
        layout.vehicles(site, road, rng.integers(1, 8), road.half_width * 0.45, 9)
        site.drive(traffic.person, road, rng.integers(2, 10), edge + pavement * 0.4, 1.4)
    layout.traffic_lights(site)
    return site


def square(rng: np.random.Generator) -> Site:
    """A square with buildings around it, and streets that lead off."""
    roads = layout.network(rng, rng.uniform(3.5, 6), rng.integers(1, 3), 0.012)
    site = layout.site_on(rng, roads, kerb=rng.choice([0.0, 0.1]), slope=0.03, rough=0.01)
    radius = rng.uniform(22, 55)
    ring = Road(x=radius, y=0.0, heading=np.pi / 2, curvature=1 / radius, half_width=0.0)
    tall = rng.uniform(10, 22)
    around = partial(layout.town_house, tall)
    cuts = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(2, 6)))  # ends of rows of houses
    for start, end in pairwise(radius * np.array([*cuts, cuts[0] + 2 * np.pi])):
        if rng.random() < 0.9:
            x, y, heading = ring.at((start + end) / 2)
            row, span = replace(ring, x=x, y=y, heading=heading), (end - start) / 2
            site.frontage(around, row, -0.1, (8, 30), span=span, margin=rng.uniform(2, 6))
    for road in roads:
        site.drive(traffic.car, road, rng.integers(1, 5), road.half_width * 0.5, 7)
    for make, most in layout.PLACE_THINGS:
        site.scatter(make, 3, *site.area(rng.integers(0, 2 * most), radius * 0.8, 1.0))
    layout.people(site, rng.integers(3, 30), radius * 0.8)
    for road in roads:
        layout.small_things(site, road, road.half_width + 0.5)
        layout.parked(site, road, road.half_width - 0.9, missing=0.8)
    return site


def suburb(rng: np.random.Generator) -> Site:
    roads = layout.network(rng, rng.uniform(2.7, 4.5), rng.integers(0, 3), 0.012)
    site = layout.site_on(rng, roads, kerb=rng.choice([0.0, 0.1]), slope=0.07, rough=0.03)
    pavement = rng.uniform(0.5, 2.5)
    for road in roads:
        lot = road.half_width + pavement
        for side in (-1, 1):
            front = side * (lot + rng.uniform(2, 6))
            site.frontage(buildings.house, road, front, (14, 22), (1, 8), 12, setback=4)
            border = rng.choice([street_furniture.fence, buildings.garden_wall, vegetation.hedge])
            site.frontage(border, road, side * lot, (8, 16), (2, 4), 0.5, missing=rng.uniform(0, 0.5))
            mixed = rng.choice([street_furniture.fence, vegetation.hedge, buildings.garden_wall])
            site.frontage(mixed, road, side * (lot + 0.1), (5, 12), (5, 20), 0.5, missing=0.4)
            site.beside(vegetation.tree, road, side * (lot + 2.5), 9, missing=0.5, models=3, jitter=4)
            site.beside(vegetation.bush, road, side * (lot + 1.5), 4, missing=0.6, models=3, jitter=3)
            site.beside(traffic.car, road, side * (lot + 3), 22, missing=0.5, turn=np.pi / 2, models=2)
            site.beside(street_furniture.litter_bin, road, side * (lot - 0.4), 15, missing=0.6)
        pole = rng.choice([street_furniture.lamp, street_furniture.utility_pole])
        site.beside(pole, road, rng.choice([-1, 1]) * (lot - 0.3), rng.uniform(20, 35), missing=0)
        layout.parked(site, road, road.half_width - 0.9, missing=rng.uniform(0.5, 0.95))
        site.drive(traffic.car, road, rng.integers(0, 4), road.half_width * 0.5, 8)
        site.drive(traffic.person, road, rng.integers(0, 3), lot - 0.5, 1.4)
    site.scatter(vegetation.tree, 3, *site.area(40, 70, 8))
    return site


def highway(rng: np.random.Generator) -> Site:
    half = rng.uniform(9, 16)
    road = Road(curvature=rng.uniform(-0.003, 0.003), half_width=half)
    bank = (rng.uniform(2, 5), rng.uniform(8, 20), rng.uniform(-4, 5))
    site = layout.site_on(rng, (road,), slope=0.03, rough=0.06, bank=bank)
    if rng.random() < 0.8:
        for middle in (0.3, -0.3):
            site.frontage(street_furniture.guard_rail, road, middle, (12, 12), depth=0.1)
    for side in (-1, 1):
        if rng.random() < 0.7:
            site.frontage(street_furniture.guard_rail, road, side * (half + 0.6), (12, 12), depth=0.1)
        near, far = side * (half + bank[0]), side * (half + bank[1])
        match rng.integers(4):
            case 0:
                site.frontage(street_furniture.noise_barrier, road, near, (20, 40), depth=0.1)
            case 1:
                layout.houses(site, road, half + bank[1] + 5, (15, 40), 12, missing=0.5, sides=(side,))
            case _:
                site.beside(vegetation.tree, road, far, rng.uniform(4, 10), models=4, jitter=8)
        off, missing = side * (half + bank[0] + 1), rng.uniform(0.3, 1)
        site.beside(vegetation.bush, road, off, 3, missing=missing, models=3, jitter=5)
        site.beside(street_furniture.sign, road, side * (half + 1.2), 25, missing=0.4, turn=np.pi / 2)
    if rng.random() < 0.6:
        site.beside(street_furniture.lamp, road, half + 1.5, rng.uniform(20, 40), missing=0, jitter=0)
    over = [street_furniture.bridge, street_furniture.gantry]
    for station in rng.uniform(-80, 80, rng.integers(0, 3)):
        x, y, yaw = road.at(station)
        site.put(rng.choice(over)(rng, 2 * half + 4), x, y, yaw)
    for lane in (0.25, 0.5, 0.8):
        layout.vehicles(site, road, rng.integers(1, 5), half * lane, 25)
    return site


def country(rng: np.random.Generator) -> Site:
    roads = layout.network(rng, rng.uniform(2.2, 3.8), rng.integers(0, 2), 0.008)
    bank = (rng.uniform(0.5, 2), rng.uniform(2.5, 6), rng.uniform(-1.2, 1.5))
    site = layout.site_on(rng, roads, slope=0.09, rough=0.07, bank=bank, hills=1.5)
    for road in roads:
        for side in (-1, 1):
            off = side * (road.half_width + bank[1])
            gap, missing = rng.uniform(5, 14), rng.uniform(0.1, 1)
            site.beside(vegetation.tree, road, off, gap, missing=missing, models=4, jitter=6)
            site.beside(vegetation.bush, road, off, 4, missing=rng.uniform(0.3, 1), models=4, jitter=5)
            if rng.random() < 0.5:
                site.frontage(street_furniture.fence, road, off * 1.1, (10, 20), (0, 10), 0.2)
            far = side * (road.half_width + 12)
            site.frontage(buildings.house, road, far, (14, 22), (10, 60), 12, missing=0.5, setback=15)
            site.beside(street_furniture.bollard, road, side * (road.half_width + 0.6), 25, missing=0.2)
        if rng.random() < 0.7:
            site.beside(street_furniture.utility_pole, road, road.half_width + bank[1] + 1, 30, missing=0)
        layout.vehicles(site, road, rng.integers(0, 3), road.half_width * 0.5, 15)
    site.scatter(vegetation.tree, 4, *site.area(rng.integers(5, 60), 85, 8), stretch=0.3)
    return site
