"""Map many scans in one call.

import pcreg
found = pcreg.register_all(["a.ply", "b.ply", "c.ply"])
moved = found.transform(0, points)  # points of the first scan, in the frame of its map
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pcreg.mapping import mapping
from pcreg.mapping.map import Map
from pcreg.registration.clouds.inputs import Points, ViewpointOption, check_seed, rows_of
from pcreg.registration.matching.prior import Prior, Up
from pcreg.registration.registrar import Registrar
from pcreg.runtime.workers import Workers


def register_all(
    clouds: Sequence[Points],
    *,
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    units: str = "m",
    columns: int | None = None,
    viewpoint: ViewpointOption = "auto",
    gravity: bool | Up | None = None,
    sequence: bool = False,
    seed: int = 0,
    device: str = "cpu",
    workers: Workers = 0,
    folder: str | Path | None = None,
) -> Map:
    """Register scans of one place, in any order and without poses.

    With `workers` other than 0 a script needs `if __name__ == "__main__":`.

    Args:
        clouds: paths or arrays (N, 3), as for `pcreg.register`, whose options hold for all scans.
        descriptor: as in `pcreg.register`.
        weights: as in `pcreg.register`.
        voxel: as in `pcreg.register`, metres.
        units: as in `pcreg.register`.
        columns: as in `pcreg.register`.
        viewpoint: as in `pcreg.register`.
        gravity: the direction up in all scans, as in `pcreg.Prior`.
        sequence: neighbours in the list are consecutive scans of one sensor at the origin of each. Odometry
            joins them; loops are found as without.
        seed: of everything random.
        device: as in `pcreg.register`.
        workers: processes that share the work, and a GPU if `device` is one; or an executor, or the address
            of a Dask scheduler, whose workers all have the device; by default this process alone.
        folder: of descriptions and records of pairs, from which a stopped call continues; by default they
            are deleted.

    Returns:
        The maps. Scans that cannot be used, or belong to no other scan, are in no map; scans that no
        registered pair joins are in different maps.

    Raises:
        InputError: fewer than two scans can be used, or a setting is invalid.
    """
    check_seed(seed)
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    options = {
        "unit": units,
        "viewpoint": viewpoint,
        "columns": columns,
        "prior": Prior(gravity=gravity),
        "sequence": sequence,
        "seed": seed,
        "workers": workers,
    }
    with TemporaryDirectory(prefix="pcreg-map-") as temporary:
        kept = Path(temporary if folder is None else folder)
        paths = [_file(cloud, number, kept / "scans") for number, cloud in enumerate(clouds)]
        return mapping.run(registrar, paths, kept, **options)


def _file(cloud: Points, number: int, folder: Path) -> str:
    """The file of a cloud; an array is written to the folder."""
    if isinstance(cloud, str | Path):
        return str(cloud)
    path = folder / f"cloud_{number}.npy"
    rows = rows_of(cloud, f"cloud {number}")
    folder.mkdir(parents=True, exist_ok=True)
    if not (path.is_file() and np.array_equal(np.load(path), rows)):  # an equal file keeps its time of change
        np.save(path, rows)
    return str(path)
