"""Small things that stand on tables, shelves and floors: 256 random variants of each kind."""

from collections.abc import Callable
from functools import cache

import numpy as np

from pcreg.datasets.simulated.draws import by_share
from pcreg.datasets.simulated.indoor.piece import between, extent, one_of, pose, ring
from pcreg.datasets.simulated.solids import Solids, balls, boxes, cones, poles, rods, tube

VARIANTS = 256  # of each family; every copy is also stretched at random


def clutter(rng: np.random.Generator, largest: float = 0.4) -> Solids:
    """A small thing that stands on the origin, at most about `largest` metres in size."""
    thing, size = _thing(by_share(FAMILIES, rng.random()), int(rng.integers(VARIANTS)))
    scale = rng.uniform(0.8, 1.25, 3) * min(1.0, largest / size)
    T = pose(yaw=360 * rng.random())
    T[:, :3] *= scale
    return thing.placed(T)


@cache
def _thing(family: Callable[[np.random.Generator], Solids], variant: int) -> tuple[Solids, float]:
    """Thing number n of a family and its size; cached, because a room holds hundreds."""
    thing = family(np.random.default_rng([list(FAMILIES).index(family), variant]))
    low, high = extent(thing)
    return thing, float((high - low).max())


def lathe(rng: np.random.Generator) -> Solids:
    """A body of revolution: bottles, vases, jars, lamps' feet, bowling pins."""
    count, height = rng.integers(4, 10), rng.uniform(0.08, 0.36)
    z = np.sort(np.r_[0, rng.uniform(0.02, 0.98, count - 1), 1]) * height
    walk = np.abs(np.cumsum(rng.normal(0, 0.35, count)) + 1)
    radius = rng.uniform(0.02, 0.08) * np.clip(walk, 0.25, 1.8)
    body = poles(radius, 0, 0, z[:-1], z[1:])
    middle = (z[:-1] + z[1:]) / 2
    bulge = balls(0, 0, middle, radius * 1.08, radius * 1.08, np.diff(z) * 0.7)
    return Solids.join(body, bulge) if rng.random() < 0.5 else body


def blob(rng: np.random.Generator) -> Solids:
    """A lump of squashed balls: toys, bags, bread, crumpled cloth."""
    count, size = rng.integers(3, 10), rng.uniform(0.05, 0.18)
    radii = size * rng.uniform(0.25, 0.9, (count, 3))
    centre = size * rng.uniform(-1, 1, (count, 3)) * [0.8, 0.8, 0.5]
    centre[:, 2] += size * 0.6
    turns = np.stack([pose(yaw=rng.uniform(0, 360), roll=rng.uniform(-60, 60)) for _ in range(count)])
    turns[:, :3, 3] = centre
    lumps = balls(0, 0, 0, *radii.T).placed(turns)
    return lumps.uneven(size * rng.uniform(0, 0.12))


def assembly(rng: np.random.Generator) -> Solids:
    """Boxes, rods and cones stuck together: machines, toys, tools, nothing in particular."""
    count, size = rng.integers(2, 8), rng.uniform(0.06, 0.2)
    parts = []
    for _ in range(count):
        a, b, c = size * rng.uniform(0.1, 0.9, 3)
        kind = rng.integers(4)
        if kind < 2:
            part = boxes(-a / 2, -b / 2, -c / 2, a / 2, b / 2, c / 2)
        elif kind == 2:
            part = poles(a / 2, 0, 0, -c / 2, c / 2)
        else:
            part = cones(a / 2, 0, 0, -c / 2, 0, 0, c / 2)
        x, y, z = (size * share for share in between(rng, [-0.5, -0.5, 0.1], [0.5, 0.5, 0.9]))
        upright = rng.random() < 0.6
        tilt = np.zeros(2) if upright else rng.uniform(-90, 90, 2)
        parts.append(part.placed(pose(x, y, z, one_of(rng, [0, 90, rng.uniform(0, 90)]), *tilt)))
    return Solids.join(*parts)


def carton(rng: np.random.Generator) -> Solids:
    """A closed box, an open one with flaps, or a stack."""
    a, b, c = between(rng, [0.03, 0.025, 0.015], [0.2, 0.175, 0.175])  # half of each edge
    if rng.random() < 0.7:
        rows, z = [], 0.0
        for _ in range(rng.integers(1, 4)):
            rows.append((-a, -b, z, a, b, z + 2 * c))
            z += 2 * c
            a, b, c = np.array([a, b, c]) * rng.uniform(0.5, 1.0, 3)
        return boxes(rows)
    t = 0.006
    walls = [(-a, -b, 0, a, b, t), (-a, -b, 0, -a + t, b, 2 * c), (a - t, -b, 0, a, b, 2 * c)]
    walls += [(-a, -b, 0, a, -b + t, 2 * c), (-a, b - t, 0, a, b, 2 * c)]
    flap = boxes(-a, 0, -t / 2, a, b, t / 2)
    flaps = [flap.placed(pose(0, y, 2 * c, yaw, 0, rng.uniform(-80, 60))) for y, yaw in ((b, 0), (-b, 180))]
    return Solids.join(boxes(walls), *flaps)


def books(rng: np.random.Generator) -> Solids:
    """A pile of books or papers, each rotated a little."""
    count = rng.integers(1, 7)
    thick = rng.uniform(0.01, 0.05, count)
    z = np.cumsum(thick)
    half = rng.uniform([0.06, 0.09], [0.12, 0.16], (count, 2))
    turns = np.stack([pose(yaw=yaw) for yaw in rng.normal(0, 15, count)])
    return boxes(*-half.T, z - thick, *half.T, z).placed(turns)


def bottle(rng: np.random.Generator) -> Solids:
    r, h = rng.uniform(0.03, 0.055), rng.uniform(0.12, 0.24)
    neck = r * rng.uniform(0.25, 0.5)
    rows = [(r, 0, 0, 0, 0, 0, h), (neck, 0, 0, h, 0, 0, h + 1.6 * r)]
    rows.append((neck * 1.2, 0, 0, h + 1.4 * r, 0, 0, h + 1.8 * r))
    return Solids.join(rods(rows), balls(0, 0, h, r, r, r * rng.uniform(0.4, 1.2)))


def mug(rng: np.random.Generator) -> Solids:
    r, h = rng.uniform(0.035, 0.06), rng.uniform(0.07, 0.13)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 6)
    loop = np.c_[r + 0.03 * np.cos(angles), np.zeros(6), h / 2 + h / 3 * np.sin(angles)]
    return Solids.join(ring(r, 0, h), poles(r, 0, 0, 0, 0.01), tube(0.006, loop))


def bowl(rng: np.random.Generator) -> Solids:
    r, h = rng.uniform(0.04, 0.12), rng.uniform(0.03, 0.12)
    parts = [ring(r, 0, h, 14, 0.005, rng.uniform(1.2, 1.8)), poles(r, 0, 0, 0, 0.008)]
    if rng.random() < 0.5:
        count = rng.integers(2, 6)
        size = rng.uniform(0.03, 0.045, count)
        places = rng.uniform(-r / 2, r / 2, (count, 2))
        parts.append(balls(*places.T, rng.uniform(0.03, 0.07, count), size, size, size))
    return Solids.join(*parts)


def pan(rng: np.random.Generator) -> Solids:
    r, h = rng.uniform(0.08, 0.16), rng.uniform(0.04, 0.16)
    handle = rods(0.01, r, 0, h * 0.8, r + rng.uniform(0.04, 0.2), 0, h * 0.9)
    parts = [ring(r, 0, h, 16), poles(r, 0, 0, 0, 0.01), handle]
    if rng.random() < 0.5:  # a lid
        parts.append(balls([(0, 0, h, r, r, 0.3 * r), (0, 0, h + 0.32 * r, 0.02, 0.02, 0.02)]))
    return Solids.join(*parts)


def kettle(rng: np.random.Generator) -> Solids:
    r, h = rng.uniform(0.06, 0.09), rng.uniform(0.12, 0.22)
    loop = np.array([(-r * 0.8, 0, h), (-r * 1.7, 0, h * 0.95), (-r * 1.8, 0, h * 0.4), (-r, 0, h * 0.15)])
    return Solids.join(
        poles(r, 0, 0, 0, h),
        balls([(0, 0, h, r, r, r * 0.4), (0, 0, h + r * 0.45, 0.015, 0.015, 0.015)]),
        cones(0.035, r * 0.6, 0, h * 0.6, r * 1.9, 0, h * 1.05),
        tube(0.012, loop),
    )


def monitor(rng: np.random.Generator) -> Solids:
    w, h, foot = between(rng, [0.2, 0.13, 0.08], [0.33, 0.22, 0.18])
    screen = boxes([(-w, -0.02, 0, w, 0.02, 2 * h), (-w * 0.6, 0.02, h * 0.5, w * 0.6, 0.06, 1.4 * h)])
    stand = boxes([(-0.12, -0.09, 0, 0.12, 0.09, 0.015), (-0.03, 0.02, 0, 0.03, 0.05, foot + h)])
    return Solids.join(screen.placed(pose(z=foot, roll=rng.uniform(-12, 6))), stand)


def keyboard(rng: np.random.Generator) -> Solids:
    w = rng.uniform(0.14, 0.23)
    mouse = balls(w + rng.uniform(0.06, 0.15), 0, 0.015, 0.03, 0.05, 0.025)
    return Solids.join(boxes(-w, -0.07, 0, w, 0.07, 0.025), mouse)


def laptop(rng: np.random.Generator) -> Solids:
    w, d = between(rng, [0.14, 0.1], [0.19, 0.13])
    lid = boxes(-w, -0.005, 0, w, 0.005, 2 * d).placed(pose(0, d, 0.02, roll=rng.uniform(-40, -5)))
    return Solids.join(boxes(-w, -d, 0, w, d, 0.02), lid)


def lamp(rng: np.random.Generator) -> Solids:
    h, r = rng.uniform(0.2, 0.45), rng.uniform(0.06, 0.16)
    if rng.random() < 0.4:  # an arm with joints
        elbow = np.array([rng.uniform(-0.15, 0), 0, h])
        head = np.array([rng.uniform(0.05, 0.25), 0, h * 1.05])
        arm = rods([(0.01, 0, 0, 0, *elbow), (0.01, *elbow, *head), (0.08, 0, 0, 0, 0, 0, 0.02)])
        foot, tip = head + np.array([0.05, 0, -0.09]), head + np.array([-0.01, 0, 0.03])
        return Solids.join(arm, cones(0.07, *foot, *tip))
    shade = ring(r * rng.uniform(0.9, 1.3), h, h + rng.uniform(0.12, 0.25), 14, 0.004, rng.uniform(0.5, 1))
    foot = balls(0, 0, h * 0.3, r * 0.6, r * 0.6, h * 0.32)
    return Solids.join(shade, foot, rods([(0.012, 0, 0, 0, 0, 0, h + 0.1), (r * 0.7, 0, 0, 0, 0, 0, 0.02)]))


def plant(rng: np.random.Generator, size: float = 0.3) -> Solids:
    """A pot and leaves: blades, or round ones on stalks."""
    pot = size * rng.uniform(0.2, 0.35)
    count = int(rng.integers(8, 26))
    blade = rng.random() < 0.5
    long = size * rng.uniform(0.35, 0.8) if blade else size * rng.uniform(0.15, 0.3)
    wide = long * (rng.uniform(0.06, 0.15) if blade else rng.uniform(0.4, 0.9))
    leaf = balls(long * 0.9, 0, 0, long, wide, 0.004)
    stalks, turns = [], []
    for _ in range(count):
        up = pot * 1.5 + (0 if blade else size * rng.uniform(0.2, 1.0))
        lean = (size * rng.normal(0, 0.25, 2) * (0.2 if blade else 1)).tolist()
        yaw, dip, roll = between(rng, [0, -30, -30], [360, 80, 30])
        turns.append(pose(*lean, up, yaw, -dip, roll))
        stalks.append((0.003, 0, 0, pot, *lean, up))
    parts = [ring(pot * 0.75, 0, pot * 1.6, 12, 0.008, 1.3), poles(pot * 0.8, 0, 0, 0, pot * 1.35)]
    parts.append(leaf.copies(np.stack(turns)))
    if not blade:
        parts.append(rods(stalks))
    return Solids.join(*parts)


def cable(rng: np.random.Generator) -> Solids:
    """A cord on the floor."""
    count = rng.integers(6, 14)
    heading = np.cumsum(rng.normal(0, 0.7, count))
    step = rng.uniform(0.03, 0.06) * np.c_[np.cos(heading), np.sin(heading), np.zeros(count)]
    along = np.cumsum(step, 0) - step.sum(0) / 2 + [0, 0, 0.006]
    return tube(rng.uniform(0.003, 0.008), along)


def bag(rng: np.random.Generator) -> Solids:
    """A rucksack or a shopping bag with its handles."""
    a, b, c = between(rng, [0.1, 0.06, 0.12], [0.22, 0.14, 0.26])
    body = balls([(0, 0, c * 0.9, a, b, c), (0, -b * 0.5, c * 0.6, a * 0.75, b * 0.8, c * 0.5)])
    block = boxes(-a * 0.8, -b * 0.7, 0, a * 0.8, b * 0.7, c * 1.4)
    angles = np.linspace(0, np.pi, 6)
    loop = np.c_[a * 0.5 * np.cos(angles), np.full(6, b * 0.3), c * 1.5 + c * 0.5 * np.sin(angles)]
    return Solids.join(body, block, tube(0.01, loop)).uneven(rng.uniform(0.005, 0.02))


def cloth(rng: np.random.Generator) -> Solids:
    """A heap of fabric: flat lumps with a strong relief."""
    count, size = rng.integers(4, 9), rng.uniform(0.1, 0.25)
    radii = size * rng.uniform([0.3, 0.3, 0.08], [0.8, 0.8, 0.3], (count, 3))
    turns = [
        pose(*(size * rng.uniform(-0.6, 0.6, 2)), z * 0.7, *between(rng, [0, -20, -20], [360, 20, 20]))
        for z in radii[:, 2]
    ]
    return balls(0, 0, 0, *radii.T).placed(np.stack(turns)).uneven(rng.uniform(0.01, 0.025))


def shoes(rng: np.random.Generator) -> Solids:
    shoe = Solids.join(
        balls([(0, -0.08, 0.035, 0.048, 0.1, 0.05), (0, 0.08, 0.05, 0.042, 0.06, 0.07)]),
        boxes(-0.04, -0.12, 0, 0.04, 0.13, 0.03),
    )
    places = [pose(x, rng.normal(0, 0.04), 0, rng.normal(0, 15)) for x in (-0.07, 0.07)]
    return shoe.copies(np.stack(places)).uneven(0.004)


def rack(rng: np.random.Generator) -> Solids:
    """A frame with plates, letters or tools in it."""
    count, gap = rng.integers(3, 9), rng.uniform(0.025, 0.05)
    x = (np.arange(count) - count / 2) * gap
    half, h = rng.uniform(0.06, 0.13), rng.uniform(0.08, 0.25)
    lean = rng.uniform(-20, 20)
    if rng.random() < 0.5:
        plates = rods(half, x, 0, half, x + 0.008, 0, half)
    else:
        plates = boxes(x, -half, 0, x + gap * 0.4, half, rng.uniform(0.6, 1, count) * h)
    plates = plates.placed(pose(pitch=lean))
    base = rods([(0.006, x[0] - 0.03, y, 0.02, x[-1] + 0.05, y, 0.02) for y in (-half * 0.8, half * 0.8)])
    return Solids.join(plates, base)


def cup_of_pens(rng: np.random.Generator) -> Solids:
    count = rng.integers(3, 8)
    feet = rng.uniform(-0.02, 0.02, (count, 2))
    tips = feet + rng.uniform(-0.05, 0.05, (count, 2))
    pens = rods(0.005, *feet.T, 0.01, *tips.T, rng.uniform(0.12, 0.2, count))
    return Solids.join(ring(0.04, 0, rng.uniform(0.08, 0.12)), pens)


def basket(rng: np.random.Generator) -> Solids:
    r, h = between(rng, [0.1, 0.12], [0.22, 0.4])
    parts = [ring(r, 0, h, 16, 0.008, rng.uniform(0.95, 1.3)), poles(r, 0, 0, 0, 0.01)]
    if rng.random() < 0.6:
        parts.append(cloth(rng).placed(pose(z=h * rng.uniform(0.3, 0.8)) @ np.diag([r * 4, r * 4, 1.5, 1])))
    return Solids.join(*parts)


# fmt: off
FAMILIES = {  # and the relative frequency of each
    lathe: 10, blob: 10, assembly: 12, carton: 10, books: 8, bottle: 6, mug: 5, bowl: 4, pan: 3, kettle: 3,
    monitor: 3, keyboard: 2, laptop: 2, lamp: 3, plant: 4, cable: 2, bag: 4, cloth: 5, shoes: 2, rack: 3,
    cup_of_pens: 2, basket: 3,
}
# fmt: on
