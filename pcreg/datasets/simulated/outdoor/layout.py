"""Common parts of scenes: roads, the ground, rows of houses and cars, people, small things."""

from functools import partial
from itertools import product

import numpy as np

from pcreg.datasets.simulated.outdoor import buildings, street_furniture, traffic, vegetation
from pcreg.datasets.simulated.outdoor.ground import Ground, Road
from pcreg.datasets.simulated.outdoor.site import Site
from pcreg.datasets.simulated.solids import Solids

# Makers, with the largest number of each in a place or, at a kerb, the metres from one to the next
# fmt: off
PLACE_THINGS = (
    (vegetation.tree, 16), (vegetation.bush, 12), (street_furniture.bench, 10), (street_furniture.lamp, 8),
    (street_furniture.kiosk, 5), (street_furniture.advertising_column, 4), (street_furniture.bollard, 20),
    (street_furniture.litter_bin, 8), (street_furniture.sign, 6), (traffic.bicycle, 10), (traffic.car, 6),
)
KERB_THINGS = (
    (street_furniture.sign, 14), (street_furniture.bollard, 4), (street_furniture.litter_bin, 20),
    (street_furniture.cabinet, 25), (street_furniture.kiosk, 60), (street_furniture.advertising_column, 60),
    (traffic.bicycle, 5), (vegetation.bush, 10),
)
# fmt: on


def network(rng: np.random.Generator, half_width: float, crossings: int, bend: float) -> tuple[Road, ...]:
    """A main road and others that cross it, each with its station 0 on the main one."""
    main = Road(curvature=rng.uniform(-bend, bend), half_width=half_width)
    roads = [main]
    stations = rng.permutation([-55.0, 0.0, 45.0])[:crossings] + rng.uniform(-15, 15, crossings)
    for station in stations:
        x, y, heading = main.at(station)
        angle, curvature = rng.uniform(np.pi / 3, 2 * np.pi / 3), rng.uniform(-bend, bend)
        width = half_width * rng.uniform(0.7, 1.1)
        roads.append(Road(x, y, heading + angle, curvature, width))
    return tuple(roads)


def uneven_ground(
    rng: np.random.Generator, roads: tuple[Road, ...], slope: float, rough=0.0, hills=0.2, **sides
) -> Ground:
    """Ground of random waves; `sides` are the `kerb` and the `bank` of its roads."""

    def waves(n: int, height: float, length: tuple[float, float]) -> np.ndarray:
        wave, angle = rng.uniform(*length, n), rng.uniform(0, 2 * np.pi, n)
        k = 2 * np.pi / wave
        heights, phase = height * rng.uniform(0, 1, n), rng.uniform(0, 2 * np.pi, n)
        return np.stack([heights, k * np.cos(angle), k * np.sin(angle), phase], 1)

    return Ground(
        roads=roads,
        slope=tuple(rng.normal(0, slope / 2, 2).clip(-slope, slope)),
        waves=np.concatenate([waves(2, hills, (60, 150)), waves(1, 0.04, (8, 25))]),
        camber=rng.choice([0.0, 0.02]),
        rough=waves(3, rough, (0.7, 4)) if rough else np.empty((0, 4)),
        **sides,
    )


def site_on(rng: np.random.Generator, roads: tuple[Road, ...], radius: float = Site.radius, **ground) -> Site:
    """An empty site on `uneven_ground` with these roads."""
    return Site(rng, uneven_ground(rng, roads, **ground), roads, radius)


def town_house(tall: float, rng: np.random.Generator, width: float) -> Solids:
    return buildings.block(rng, width, rng.uniform(7, 14), tall * rng.uniform(0.7, 1.3))


def houses(
    site: Site, road: Road, offset: float, widths: tuple[float, float], tall: float, sides=(-1, 1), **row
) -> None:
    for side in sides:
        site.frontage(partial(town_house, tall), road, side * offset, widths, **row)


def parked(site: Site, road: Road, offset: float, missing: float) -> None:
    for side in (-1, 1):
        turn = 0.0 if site.rng.random() < 0.8 else site.rng.uniform(0.5, 1.5)
        at = road, side * offset
        site.beside(traffic.car, *at, 5.6, missing=missing, models=4, turn=turn, stretch=0.06, margin=3)
        make = site.rng.choice([traffic.van, traffic.truck])
        site.beside(make, *at, 40, missing=0.6, turn=turn, margin=4, models=1)


def vehicles(site: Site, road: Road, n: int, offset: float, speed: float) -> None:
    kinds = [*[traffic.car] * 3, traffic.van, traffic.bus, traffic.truck, traffic.cyclist]
    for _ in range(n):
        site.drive(site.rng.choice(kinds), road, 1, offset, speed)


def people(site: Site, n: int, radius: float) -> None:
    """People, some standing, some walking on straight lines."""
    x, y, yaw = site.area(n, radius, 0.3)
    walking = site.rng.random(len(x)) < 0.5
    site.scatter(traffic.person, 3, x[~walking], y[~walking], yaw[~walking], 0.08)
    for at in np.flatnonzero(walking):
        site.drive(traffic.person, Road(x[at], y[at], yaw[at]), 1, 0.0, 1.3)


def small_things(site: Site, road: Road, edge: float) -> None:
    """Place KERB_THINGS at the edge of a road, many or none of each."""
    for make, gap in KERB_THINGS:
        for side in (-1, 1):
            missing, turn = site.rng.uniform(0.4, 1.2), site.rng.choice([0.0, np.pi / 2])
            site.beside(make, road, side * edge, gap, missing=missing, models=1, turn=turn)


def traffic_lights(site: Site) -> None:
    main = site.roads[0]
    for other in site.roads[1:]:
        for side, across in product((-1, 1), repeat=2):
            x, y, yaw = other.at(side * (main.half_width + 1), across * (other.half_width + 0.7))
            if site.rng.random() < 0.7:
                site.put(street_furniture.traffic_light(site.rng), x, y, yaw + np.pi * (across < 0))
