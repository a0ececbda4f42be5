"""Small surfaces to run a network on."""

from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import rotation_about, se3, transform


def wavy_sheet(n: int = 600, seed: int = 0, extent: float = 1.0) -> np.ndarray:
    """Points (n, 3) float64 scattered on a curved sheet of edge `extent` metres."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, extent, (2, n))
    z = 0.15 * extent * np.sin(5 * x / extent) * np.cos(3 * y / extent + seed)
    return np.stack([x, y, z], 1)


def moved_sheet(folder: Path) -> list[Path]:
    """Files of a sheet, and of the same moved."""
    sheet = wavy_sheet(3000)
    np.save(folder / "a.npy", sheet)
    np.save(folder / "b.npy", transform(se3(rotation_about([0, 0, 1], 20), np.full(3, 0.2)), sheet))
    return [folder / "a.npy", folder / "b.npy"]
