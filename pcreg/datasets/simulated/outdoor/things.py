"""Things of outdoor scenes: solids of some material, and copies of them."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from pcreg.datasets.simulated.solids import Solids


class Material(IntEnum):
    """Properties of a surface that a laser hits; pcreg.datasets.simulated.outdoor.lidar uses them."""

    MATT = 0
    GLASS = 1
    DARK = 2  # black paint
    LEAVES = 3  # a ray may pass between them


@dataclass(frozen=True)
class Things:
    """P solids and their `material` (P,) int64."""

    solids: Solids
    material: np.ndarray

    def __len__(self) -> int:
        return len(self.solids)

    def copies(self, T: np.ndarray) -> "Things":
        """Copies moved by each affine T (N, 4, 4), one after another."""
        return Things(self.solids.copies(T), np.tile(self.material, len(T)))

    def where(self, kept: np.ndarray) -> "Things":
        """The solids of a mask `kept` (P,)."""
        return Things(Solids(self.solids.shape[kept], self.solids.T_world_unit[kept]), self.material[kept])

    @staticmethod
    def of(*solids: Solids, material: Material = Material.MATT) -> "Things":
        """Things of one material."""
        joined = Solids.join(*solids)
        return Things(joined, np.full(len(joined), material, np.int64))

    @staticmethod
    def join(*parts: "Things") -> "Things":
        solids = Solids.join(*(part.solids for part in parts))
        return Things(solids, np.concatenate([np.empty(0, np.int64), *(part.material for part in parts)]))


def standing(
    x: np.ndarray, y: np.ndarray, z: np.ndarray, yaw: np.ndarray, scale: np.ndarray | float = 1.0
) -> np.ndarray:
    """T (N, 4, 4) that stretches by `scale` (N, 3), turns by `yaw` (N,) radians and moves to x, y, z (N,)."""
    x, y, z, yaw = np.broadcast_arrays(*map(np.atleast_1d, (x, y, z, yaw)))
    T = np.zeros((len(x), 4, 4))
    T[:, 0, 0] = T[:, 1, 1] = np.cos(yaw)
    T[:, 1, 0] = np.sin(yaw)
    T[:, 0, 1] = -T[:, 1, 0]
    T[:, 2, 2] = T[:, 3, 3] = 1
    T[:, :3, :3] *= np.broadcast_to(scale, (len(x), 3))[:, None]
    T[:, :3, 3] = np.stack([x, y, z], 1)
    return T
