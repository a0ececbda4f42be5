"""What the operator benchmarks measure on: a cloud, its triplets, and the ceilings of the machine."""

import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import torch
from timing import medians
from torch import Tensor

from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.stencil import native_triplets
from pcreg.kernels.triplets import Triplets
from pcreg.runtime.errors import InputError

PRECISIONS = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True)
class Workload:
    """A cloud with one point per voxel."""

    cloud: PointBatch
    voxels: Tensor  # (N, 3) int64, all different
    size: float  # metres

    def search(self) -> Triplets:
        points, lengths = self.cloud.points, self.cloud.lengths
        return native_triplets(points, points, lengths, lengths, self.size)


def load(path: Path | None, size: float, device: torch.device) -> Workload:
    """The cloud in `path`, by default a scan of a simulated room, thinned to one point per voxel."""
    if path is None:
        from pcreg.datasets.simulated.indoor import record_scans

        points = record_scans(seed=0, index=0).clouds[0].double().numpy()
    else:
        points = read_cloud(path).points
    points = points[voxel_downsample(points, size)]
    voxels = torch.from_numpy(np.floor(points / size)).long()
    return Workload(PointBatch.from_clouds([points]).to(device), voxels.to(device), size)


def measure_ceilings(device: torch.device, runs: int) -> dict[str, float]:
    """Rates of a large copy (bytes read and written) and of large matrix products, measured."""
    size, n = (2**28, 8192) if device.type == "cuda" else (2**25, 1024)
    source = torch.randn(size, device=device)
    target = torch.empty_like(source)
    (ms,) = medians([lambda: target.copy_(source)], runs, device)
    ceilings = {"copy_gigabytes": 8 * size / ms / 1e6}
    for precision, dtype in PRECISIONS.items():
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
        (ms,) = medians([lambda a=a, b=b: a @ b], runs, device)
        ceilings[f"{precision}_teraflops"] = 2 * n**3 / ms / 1e9
    if device.type == "cuda":  # point_conv takes six bfloat16 products for one of float32
        ceilings["float32_teraflops"] = max(ceilings["float32_teraflops"], ceilings["bfloat16_teraflops"] / 6)
    print(", ".join(f"{key} {value:.4g}" for key, value in ceilings.items()))
    return ceilings


def run(main: Callable[[], None]) -> None:
    """Run a benchmark; bad input ends it with one sentence and exit status 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def describe_machine(device: torch.device) -> dict[str, str]:
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"CPU with {torch.get_num_threads()} threads"
    machine = {"device": name, "python": platform.python_version()}
    for package in ("torch", "triton"):
        with suppress(PackageNotFoundError):
            machine[package] = version(package)
    return machine
