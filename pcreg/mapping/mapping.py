"""Maps of scans without poses: describe, screen, register pairs, optimise, join.

Each scan is described once, in a folder that worker processes share, and pairs are screened. The most
promising pairs are registered in rounds, as by `Registrar.register`, and the pose graph is solved after each.
The size of rounds, and so the map, does not depend on the number of workers. Finally submaps decide what
single pairs cannot. A run that was stopped continues.
"""

import logging
import os
import re
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pcreg.features.base import Descriptor
from pcreg.geometry.se3 import dot
from pcreg.mapping.consolidation import Consolidation
from pcreg.mapping.growing_map import FEW_SCANS, GrowingMap
from pcreg.mapping.map import Map
from pcreg.mapping.submap import Scan
from pcreg.registration.batch import DESCRIPTIONS, OTHER_RUN, PAIRS, Work, examined_files, settings_of
from pcreg.registration.clouds.inputs import Points, ViewpointOption, check_seed, check_viewpoint, points_of
from pcreg.registration.clouds.stored import CloudFile
from pcreg.registration.matching.prior import ANY, Prior, Up
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.diagnostics import MAX_SCAN_METRES
from pcreg.registration.strategy.gicp import small_gicp
from pcreg.runtime.errors import InputError, attempted
from pcreg.runtime.files import DAMAGED_NPZ, locked, replacing
from pcreg.runtime.progress import progress
from pcreg.runtime.records import REGISTERING, Records, code_fingerprint
from pcreg.runtime.workers import Workers, executor_of, map_unordered

log = logging.getLogger(__name__)

# A scan faces its origin if at least FACING of its normals point there. If MIN_FACING_SCANS of the scans do,
# the sensor stood at the origin of all. Of simulated rooms 0.65 to 0.89 do, with random origins 0.28 at most.
FACING, MIN_FACING_SCANS = 0.95, 0.6


def register_all(
    clouds: Sequence[Points],
    *,
    descriptor: str | Descriptor = "fcgf",
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
        clouds: Paths or arrays (N, 3), as for `pcreg.register`, whose options hold for all scans.
        descriptor: As in `pcreg.register`.
        weights: As in `pcreg.register`.
        voxel: As in `pcreg.register`, metres.
        units: As in `pcreg.register`.
        columns: As in `pcreg.register`.
        viewpoint: As in `pcreg.register`.
        gravity: Upward direction in all scans, as in `pcreg.Prior`.
        sequence: True if the list holds consecutive scans of one sensor, which stands at the origin of each.
            Odometry joins neighbours; loop closures are found as without it.
        seed: Seed of all random numbers.
        device: As in `pcreg.register`.
        workers: Processes that share the work, and a GPU if `device` is one; or an executor, or the address
            of a Dask scheduler, whose workers all have the device; by default this process alone.
        folder: Folder of descriptions and records of pairs, from which a stopped call continues; by default a
            temporary one.

    Returns:
        The maps. Scans that cannot be used, or fit no other scan, are in no map; scans that no registered
            pairs connect are in different maps.

    Raises:
        InputError: Fewer than two scans can be used, or a setting is invalid.
    """
    if isinstance(clouds, str | Path):
        raise InputError(f"clouds={str(clouds)!r} is one cloud; pass a list of them")
    check_seed(seed)
    registrar = Registrar(descriptor=descriptor, weights=weights, voxel=voxel, device=device)
    if folder is None:
        own = TemporaryDirectory(prefix="pcreg-map-")
    else:
        own = locked(os.path.expanduser(folder), "name another one")
    with own as place:
        kept = Path(place)
        files = [_file(cloud, number, kept / "scans") for number, cloud in enumerate(clouds)]
        file_of_array = re.compile(re.escape(str(kept / "scans" / "cloud_")) + r"(\d+)\.npy")  # temporary

        def named(text: str) -> str:
            return file_of_array.sub(r"cloud \1", text)

        try:
            found = run(
                registrar,
                files,
                kept,
                units=units,
                viewpoint=viewpoint,
                columns=columns,
                prior=Prior(gravity=gravity),
                sequence=sequence,
                seed=seed,
                workers=workers,
            )
        except InputError as error:
            raise type(error)(named(str(error))) from error
    if folder is not None:
        return found
    edges = tuple(replace(edge, reason=named(edge.reason)) for edge in found.edges)
    names, errors = (tuple(map(named, texts)) for texts in (found.names, found.errors))
    return replace(found, names=names, errors=errors, edges=edges)


def _file(cloud: Points, number: int, folder: Path) -> str:
    """The file of a cloud; an array is written to the folder."""
    if isinstance(cloud, str | Path):
        return str(cloud)
    path, points = folder / f"cloud_{number}.npy", points_of(cloud, f"cloud {number}")
    with suppress(*DAMAGED_NPZ):
        if np.array_equal(np.load(path), points, equal_nan=True):  # the file keeps its time of change
            return str(path)
    with replacing(path) as temporary:
        np.save(temporary, points)
    return str(path)


def run(
    registrar: Registrar,
    paths: Sequence[str],
    folder: Path,
    *,
    units: str = "m",
    viewpoint: ViewpointOption = "auto",
    columns: int | None = None,
    prior: Prior = ANY,
    sequence: bool = False,
    seed: int = 0,
    workers: Workers = None,
) -> Map:
    """The map of the scans in these files, in any order; pairs recorded in `folder` are not done again.

    The `prior`, of gravity alone, holds between every two scans. Raises InputError as `register_all`, for
    settings that differ from those of the records, and if a worker lacks the registrar's device.
    """
    if len(set(paths)) < 2:
        raise InputError(f"{len(set(paths))} scans are not a map; name two or more")
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=list(paths).count)}: is named twice; name each scan once")
    if prior.near is not None:
        raise InputError("prior.near: is a transform of one pair; give a map the direction of gravity alone")
    option = check_viewpoint(viewpoint)
    if sequence:
        small_gicp()  # raises InputError before anything is read
    settings = settings_of(registrar, units, option, columns, prior, seed)
    settings["code"] = code_fingerprint(*REGISTERING, "mapping/odometry.py", "mapping/submap.py")
    settings["sequence"] = sequence and f"by small_gicp {version('small_gicp')}"
    records = Records(folder / PAIRS, settings, OTHER_RUN)
    with executor_of(workers, registrar.device) as executor:
        files = [CloudFile(path, units, columns, option) for path in paths]
        found = examined_files(executor, registrar, files)
        usable = [file for file in found.values() if not file.error]
        thorough = len(usable) <= FEW_SCANS  # with many, further voxel sizes find more wrong than right pairs
        work = Work(registrar, found, folder / DESCRIPTIONS, seed, prior, thorough)
        voxel = common_voxel(registrar, usable)
        scans, errors = _described(executor, work, paths, voxel)
        if isinstance(option, str) and option == "auto" and (behind := _seen_from_behind(scans, found)):
            corrected = {"viewpoint": "sensor", "stated": np.zeros(3)}
            for path in behind:  # change the state, so that no record of the opposite decision is used
                found[path] = replace(found[path], **corrected, state=(*found[path].state, 1))
            scans |= _described(executor, work, behind, voxel)[0]
        used = {path: scans[path] for path in paths if path in scans}
        if len(used) < 2:
            raise InputError(f"{len(used)} of {len(paths)} scans can be used; {next(iter(errors.values()))}")
        growing = GrowingMap(work, used, voxel, records, executor)
        if sequence:
            growing.follow()
        consolidation = Consolidation(growing)
        growing.register(consolidation.cut if len(used) > FEW_SCANS else growing.solve)
        consolidation.run()
    return replace(growing.result(paths, errors), units=units)


def _seen_from_behind(scans: dict[str, Scan], files: dict[str, CloudFile]) -> list[str]:
    """Scans with a viewpoint estimated behind their surface, if most have a sensor at their origin."""
    facing = {
        path: np.mean(dot(scan.frame.T_local_given[:3, 3] - scan.surface, scan.normals) > 0)
        for path, scan in scans.items()
        if files[path].stated is None
    }
    most = np.mean([share >= FACING for share in facing.values()] or [0]) >= MIN_FACING_SCANS
    return [path for path, share in facing.items() if most and share < 0.5]


def common_voxel(registrar: Registrar, files: Sequence[CloudFile]) -> float:
    """The common voxel size of the scans in metres."""
    if registrar.voxel is not None:
        return registrar.voxel
    if (size := np.median([file.extent for file in files])) > MAX_SCAN_METRES:
        log.warning("scans are %.0f m across: if they are in millimetres, add --units mm", size)
    own = float(np.sort([file.voxel for file in files])[len(files) // 2])
    return registrar.voxels(own, max(file.extent for file in files))[0]


def _described(
    executor: Executor | None, work: Work, paths: Sequence[str], voxel: float
) -> tuple[dict[str, Scan], dict[str, str]]:
    """The scans by path, and the errors of unusable ones."""
    errors = {path: work.files[path].error for path in paths if work.files[path].error}
    todo = [path for path in paths if path not in errors]
    scans = {}
    described = map_unordered(executor, _describe, (work, voxel), todo)
    for path, (scan, error) in progress(described, "describe", len(todo)):
        if scan is None:
            errors[path] = error
        else:
            scans[path] = scan
    return scans, errors


def _describe(work: Work, voxel: float, path: str) -> tuple[Scan | None, str]:
    """One scan, or None and the error why it cannot be used."""
    cloud = work.cloud(path)
    descriptor = work.registrar.at(voxel).descriptor
    return attempted(lambda: Scan.of(cloud.at(descriptor), cloud.frame, voxel))
