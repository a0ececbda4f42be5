"""Outdoor scenes of many kinds, and halls, drawn from a seeded generator.

World frame: z up, metres, the middle of the scene at the origin, the main way through it. A kind of
scene is one function of the generator; a new one is one more function.
"""

from collections.abc import Callable

import numpy as np

from pcreg.datasets.simulated.outdoor.places import car_park, court, hall, park, yard
from pcreg.datasets.simulated.outdoor.site import Scene, Site
from pcreg.datasets.simulated.outdoor.streets import city, country, highway, old_town, square, suburb


def outdoor_scene(rng: np.random.Generator, kind: str | None = None) -> Scene:
    """A scene of one of KINDS, or a random one."""
    name = str(rng.choice(list(KINDS), p=_SHARES)) if kind is None else kind
    return KINDS[name](rng).scene(name)


KINDS: dict[str, Callable[[np.random.Generator], Site]] = {
    "old town": old_town,
    "city": city,
    "square": square,
    "suburb": suburb,
    "highway": highway,
    "park": park,
    "country": country,
    "car park": car_park,
    "yard": yard,
    "court": court,
    "hall": hall,
}
_SHARES = np.array([3, 5, 4, 3, 2, 2, 2, 2, 2, 3, 4]) / 32
