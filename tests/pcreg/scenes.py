"""Small surfaces to run a network on."""

import numpy as np


def wavy_sheet(n: int = 600, seed: int = 0, extent: float = 1.0) -> np.ndarray:
    """Points (n, 3) float64 scattered on a curved sheet of edge `extent` metres."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, extent, (2, n))
    z = 0.15 * extent * np.sin(5 * x / extent) * np.cos(3 * y / extent + seed)
    return np.stack([x, y, z], 1)
