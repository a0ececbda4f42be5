"""Arrays on the CPU (NumPy) or on a GPU (torch), under one namespace.

Algorithms of geometry and registration are written once, over the namespace of the arrays that they get:

    xp = namespace(points)
    lowest = xp.min(points, axis=0)

Arrays with a row per point stay where they are. Motions, and whatever has a row per hypothesis, are NumPy
arrays on the host. Without a GPU torch is not imported.
"""

from pcreg.arrays.namespace import Array, is_on_host, like, namespace, to_device, to_host

__all__ = ["Array", "is_on_host", "like", "namespace", "to_device", "to_host"]
