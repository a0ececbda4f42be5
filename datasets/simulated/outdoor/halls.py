"""Garages, warehouses and lobbies."""

import numpy as np

from pcreg.datasets.simulated.outdoor import buildings, stores, street_furniture, traffic
from pcreg.datasets.simulated.outdoor.ground import Ground, Road
from pcreg.datasets.simulated.outdoor.layout import people
from pcreg.datasets.simulated.outdoor.site import Site
from pcreg.datasets.simulated.outdoor.things import Things
from pcreg.datasets.simulated.solids import box, rod


def hall(rng: np.random.Generator) -> Site:
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
    site.put(Things.of(*beams), 0.0, 0.0, 0.0)
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
        site.scatter(stores.rack, 3, px[:8], py[:8], turn[:8] * 0)
        site.scatter(stores.pallets, 4, px[8:], py[8:], turn[8:])
    for make in (
        street_furniture.bench,
        street_furniture.kiosk,
        street_furniture.cabinet,
        street_furniture.litter_bin,
        street_furniture.advertising_column,
    ):
        site.scatter(make, 2, *site.area(rng.integers(0, 5), half.min() - 1, 0.8))
    people(site, rng.integers(0, 8), half.min() - 1)
    return site
