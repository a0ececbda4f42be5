"""Arrays on the CPU (NumPy) or on a GPU (torch), under one namespace.

Algorithms of geometry and registration are written once, over the namespace of the arrays that they get:

    xp = namespace(points)
    lowest = xp.min(points, axis=0)

Arrays with a row per point stay where they are. Motions, and whatever has a row per hypothesis, are NumPy
arrays on the host. Without a GPU torch is not imported. A device is named by a string: `cpu` means NumPy,
anything else torch.

Four primitives dispatch by device: nearest neighbours (`Index`), `scatter_min`, the sum of an ICP step and
the count of a consensus. NumPy and SciPy define them.
"""

from pcreg.arrays.index import Index
from pcreg.arrays.namespace import (
    Array,
    device_of,
    every_nth,
    is_on_host,
    like,
    namespace,
    take,
    to_device,
    to_host,
)
from pcreg.arrays.scatter import scatter_min

__all__ = [
    "Array",
    "Index",
    "device_of",
    "every_nth",
    "is_on_host",
    "like",
    "namespace",
    "scatter_min",
    "take",
    "to_device",
    "to_host",
]
