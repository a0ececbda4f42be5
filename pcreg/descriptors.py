"""Local descriptors: what a cloud looks like around each of its points.

Every descriptor thins the cloud to one original point per voxel cell and returns those points with
one feature row each. Features are compared by Euclidean distance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from kernels.grid import grid_sample
from pcreg.batch import PointBatch
from pcreg.device import choose_device
from pcreg.errors import InputError
from pcreg.resunet import ResUNet
from pcreg.weights import fingerprint, load_weights

# About what hierarchy and network take at their peak, in float32 (docs/benchmarks.md).
BYTES_PER_POINT = 4096


@dataclass(frozen=True)
class Description:
    """Row n of the features describes row n of the points."""

    points: np.ndarray  # (M, 3) float64, metres, rows of the cloud that was described
    features: np.ndarray  # (M, C) float32


class Descriptor(Protocol):
    """What matching and evaluation ask of a descriptor."""

    name: str
    voxel: float  # metres
    fingerprint: str  # changes with anything learned that the features depend on
    device: str  # on which it is computed, such as cpu

    def describe(self, points: np.ndarray) -> Description:
        """Describe the cloud (N, 3) float64; the same points give the same description."""
        ...


def thin(points: np.ndarray, voxel: float) -> np.ndarray:
    """Rows (M,) int64 of points (N, 3) to keep: of each cell floor(p / voxel) the one nearest its centre.

    Cells start at the origin of the cloud's frame, as they do in FCGF and in the fragments of 3DMatch:
    a cloud thinned there before comes out whole. Raises InputError for a voxel that is too small to
    number its cells.
    """
    origin = torch.zeros(1, 3, dtype=torch.float64)
    try:
        rows = grid_sample(torch.from_numpy(points), torch.tensor([len(points)]), voxel, origin)
    except ValueError as error:
        raise InputError(f"voxel {voxel:g} m is too small for this cloud ({error})") from error
    return rows.numpy()


class FPFH:
    """Fast point feature histograms (Rusu et al., ICRA 2009), 33 columns, computed by Open3D.

    The voxel size sets the scale: normals come from a ball of 4 voxels and the histogram from one of
    10, both wider than the common 2 and 5, which tell far fewer points apart on indoor fragments.
    Normals point towards the sensor, which stands at the origin of the cloud's own frame.
    """

    name = "fpfh"
    fingerprint = ""  # nothing is learned
    device = "cpu"

    def __init__(
        self,
        voxel: float = 0.025,  # metres
        normal_radius: float | None = None,  # metres; 4 x voxel
        normal_neighbors: int = 100,
        feature_radius: float | None = None,  # metres; 10 x voxel
        feature_neighbors: int = 400,
    ) -> None:
        self.voxel = voxel
        self.normal_radius = 4 * voxel if normal_radius is None else normal_radius
        self.normal_neighbors = normal_neighbors
        self.feature_radius = 10 * voxel if feature_radius is None else feature_radius
        self.feature_neighbors = feature_neighbors

    def describe(self, points: np.ndarray) -> Description:
        import open3d

        kept = points[thin(points, self.voxel)]
        if len(kept) == 0:
            return Description(kept, np.empty((0, 33), dtype=np.float32))
        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(kept))
        hybrid = open3d.geometry.KDTreeSearchParamHybrid
        cloud.estimate_normals(hybrid(self.normal_radius, self.normal_neighbors))
        cloud.orient_normals_towards_camera_location(np.zeros(3))
        # Open3D's newer class of clouds: the same histograms in half the time.
        newer = open3d.t.geometry.PointCloud.from_legacy(cloud, open3d.core.Dtype.Float64)
        features = open3d.t.pipelines.registration.compute_fpfh_feature(
            newer, self.feature_neighbors, self.feature_radius
        )
        return Description(kept, features.numpy().astype(np.float32))


class FCGF:
    """Fully convolutional geometric features (Choy, Park and Koltun, ICCV 2019) of a trained network."""

    name = "fcgf"

    def __init__(self, network: ResUNet, device: str = "cpu") -> None:
        self.device = choose_device(device)
        self.network = network.to(self.device).eval()
        self.voxel = network.architecture.voxel
        self.fingerprint = fingerprint(network)

    @staticmethod
    def load(weights: str, device: str = "cpu") -> "FCGF":
        """The descriptor of a .safetensors file written by train.py; InputError if it cannot be used."""
        return FCGF(load_weights(weights), device)

    def describe(self, points: np.ndarray) -> Description:
        return self.describe_all([points])[0]

    @torch.inference_mode()
    def describe_all(self, clouds: Sequence[np.ndarray], budget: int = 4 * 2**30) -> list[Description]:
        """Describe clouds (N, 3) in as few passes as fit into about `budget` bytes of the device's memory.

        What a cloud is batched with does not change its description but for the last bits, and with
        torch.use_deterministic_algorithms not even those. A cloud too large for the budget goes alone.
        """
        kept = [points[thin(points, self.voxel)] for points in clouds]
        described = []
        for batch in _batches(kept, max(budget // BYTES_PER_POINT, 1)):
            features = self.network.describe(PointBatch.from_clouds(batch).to(self.device))
            split = np.split(
                features.float().cpu().numpy(), np.cumsum([len(points) for points in batch])[:-1]
            )
            described += map(Description, batch, split)
        return described


def _batches(clouds: list[np.ndarray], most_points: int) -> Iterator[list[np.ndarray]]:
    """The clouds in their order, in lists of no more points altogether unless one cloud has them alone."""
    batch: list[np.ndarray] = []
    for points in clouds:
        if batch and sum(map(len, batch)) + len(points) > most_points:
            yield batch
            batch = []
        batch.append(points)
    if batch:
        yield batch
