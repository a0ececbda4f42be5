"""Many pairs of clouds: describe each cloud once, match the pairs, one record and one table row for each.

Worker processes share the work as they do in a benchmark, and a run that was stopped goes on where it
ended. A cloud that cannot be used spoils its own pairs and no other.
"""

import csv
import glob
import io
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.features import pretrained
from pcreg.features.cache import FeatureCache, read_described
from pcreg.features.fcgf import FCGF
from pcreg.geometry.viewpoint import ViewpointOption
from pcreg.geometry.voxel_size import voxel_of
from pcreg.io.cloud import Cloud
from pcreg.io.natural_order import natural
from pcreg.registration.api import at_scales
from pcreg.registration.fallback import register_with_fallback
from pcreg.registration.inputs import as_cloud
from pcreg.registration.preprocess import PreparedCloud
from pcreg.registration.registrar import Registrar
from pcreg.registration.task import Task, facts
from pcreg.runtime.code_fingerprint import code_fingerprint
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.files import replacing
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import Workers, executor_of, map_unordered

COLUMNS = ("source", "target", "registered", "confidence", "inliers", "overlap", "rmse", "voxel")
Pair = tuple[str, str]  # the files of source and target
Reader = Callable[[str, str], Cloud]  # of a file and what errors call it


@dataclass(frozen=True)
class PreparedFile:
    """A described cloud."""

    file: Path | None  # with its PreparedCloud; None if it could not be described
    error: str = ""  # why not
    notes: tuple[str, ...] = ()  # of the cloud


def pairs_of(listed: str) -> list[Pair]:
    """The pairs of a .csv file, or of the files that match a pattern, each with the one before it.

    A line of the .csv file names source and target; a first line `source,target`, in capitals or not, is a
    heading. Paths are relative to its folder. Numbers in the names of the files that match a pattern are
    read as numbers, scan_2 before scan_10. Raises InputError for a file or pattern without pairs.
    """
    if Path(listed).suffix.lower() != ".csv":
        files = sorted(glob.glob(listed, recursive=True), key=natural)
        if len(files) < 2:
            remedy = "two or more are needed, or a .csv file; put a pattern in quotes"
            raise InputError(f"--batch {listed}: {len(files)} files match; {remedy}")
        return [(later, earlier) for earlier, later in pairwise(files)]
    try:
        text = Path(listed).read_text(encoding="utf-8-sig", errors="surrogateescape")  # as file names are
        rows = list(csv.reader(io.StringIO(text)))
        if "\0" in text:
            raise ValueError("no text, or in UTF-16")
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{listed}: cannot be read as a list of pairs; write lines SOURCE,TARGET") from error
    named = {}
    for number, row in enumerate(rows, start=1):
        words = [word.strip() for word in row]
        if not any(words) or (number == 1 and [word.lower() for word in words[:2]] == ["source", "target"]):
            continue
        if len(words) < 2 or not all(words[:2]):
            raise InputError(f"{listed}: line {number} does not name two files; write SOURCE,TARGET")
        named[tuple(str(Path(listed).parent / word) for word in words[:2])] = None
    if not named:
        raise InputError(f"{listed}: holds no pairs; write lines SOURCE,TARGET")
    return list(named)


def run(
    pairs: Sequence[Pair],
    folder: Path,
    *,
    descriptor: str = "fcgf",
    weights: str | Path | None = None,
    voxel: float | None = None,
    unit: str = "m",
    viewpoint: ViewpointOption = "auto",
    columns: int | None = None,
    seed: int = 0,
    workers: Workers = None,
) -> list[dict[str, Any]]:
    """Register the pairs; returns their records, in order, also written to `folder` with table.csv.

    Pairs recorded there before are not done again unless a file of theirs has changed. The voxel size is
    the median of what suits the clouds if left out. Answers do not depend on the number of `workers`
    (one per core by default). Raises InputError for settings that differ from those of the records.
    """
    settings = {
        "descriptor": descriptor,
        "weights": _weights(descriptor, weights),
        "voxel": voxel,
        "unit": unit,
        "viewpoint": viewpoint if isinstance(viewpoint, str) else list(viewpoint),
        "columns": columns,
        "seed": seed,
        "code": code_fingerprint(__name__),
    }
    records = Records(folder / "pairs.jsonl", settings, "name another folder with --out")
    read = partial(as_cloud, unit=unit, columns=columns)
    todo = [pair for pair in pairs if records.by_pair.get(_name(pair), {}).get("stamp") != _stamp(pair)]
    with executor_of(workers) as executor:
        if todo:
            scale = voxel or next((each["scale"] for each in records.by_pair.values()), None)
            scale = scale or _scale(executor, todo, read)
            sizes = [scale] if voxel else [scale, 2 * scale, scale / 2]
            choices = at_scales(descriptor, weights, sizes, fixed=voxel is not None)
            print(f"descriptor: {choices[0].label}, voxel {choices[0].voxel:g} m; {len(todo)} pairs to do")
            registrars = [Registrar(each, viewpoint=viewpoint) for each in choices]
            _register(executor, todo, registrars, scale, records, folder, read, unit, seed)
    records.order([_name(pair) for pair in pairs])
    chosen = [records.by_pair[_name(pair)] for pair in pairs]
    _write_table(folder / "table.csv", chosen)
    return chosen


def _weights(descriptor: str, weights: str | Path | None) -> str:
    """A checksum of what the learned descriptor may be computed with; empty for one that learns nothing."""
    if weights:
        return FCGF.load(weights).fingerprint
    return pretrained.checksum() if descriptor == FCGF.name else ""


def _scale(executor: Executor | None, pairs: Sequence[Pair], read: Reader) -> float:
    """The median of the voxel sizes that suit the clouds, metres."""
    files = dict.fromkeys(file for pair in pairs for file in pair)
    found = dict(progress(map_unordered(executor, _voxel_of_file, (read,), files), "voxel size", len(files)))
    sizes = sorted(size for size in found.values() if size)
    if not sizes:
        raise InputError(f"none of the {len(files)} files can be used: {_first_error(files, read)}")
    return sizes[len(sizes) // 2]


def _register(
    executor: Executor | None,
    todo: Sequence[Pair],
    registrars: Sequence[Registrar],
    scale: float,
    records: Records,
    folder: Path,
    read: Reader,
    unit: str,
    seed: int,
) -> None:
    """Describe the clouds, match the pairs, and record each as soon as it is done."""
    descriptor = registrars[0].descriptor
    depends = {"voxel": descriptor.voxel, "weights": descriptor.fingerprint}
    depends |= {key: records.run[key] for key in ("viewpoint", "code")}
    cache = FeatureCache(folder / "descriptions", registrars[0], depends)
    files = dict.fromkeys(file for pair in todo for file in pair)
    described = map_unordered(executor, _describe, (cache, read), files)
    kept = dict(progress(described, "describe", len(files)))
    matched = map_unordered(executor, _match, (kept, registrars, read, unit, seed), todo)
    for pair, record in progress(matched, "register", len(todo)):
        records.add(record | {"pair": _name(pair), "stamp": _stamp(pair), "scale": scale})


def _voxel_of_file(read: Reader, file: str) -> float | None:
    """What suits the cloud, None if it cannot be used."""
    try:
        return voxel_of(read(file, file).points, file)
    except InputError:
        return None


def _first_error(files: Sequence[str], read: Reader) -> str:
    try:
        voxel_of(read(next(iter(files)), "").points, next(iter(files)))
    except InputError as error:
        return str(error)
    return "check them"


def _describe(cache: FeatureCache, read: Reader, file: str) -> PreparedFile:
    try:
        cloud = read(file, file)
        return PreparedFile(cache.file_of(cloud.points), notes=cloud.notes)
    except OutputError:  # no fault of the cloud
        raise
    except InputError as error:
        words = str(error)
        return PreparedFile(None, words if words.startswith(file) else f"{file}: {words}")


def _match(
    kept: dict[str, PreparedFile],
    registrars: Sequence[Registrar],
    read: Reader,
    unit: str,
    seed: int,
    pair: Pair,
) -> dict[str, Any]:
    """The record of a pair."""
    sides = [kept[file] for file in pair]
    errors = [side.error for side in sides if side.error]
    if errors:
        return {"source": pair[0], "target": pair[1], "registered": False, "error": "; ".join(errors)}
    shapes = [read_described(side.file, PreparedCloud).description for side in sides]
    found = registrars[0].match(*shapes, seed=seed)
    found = register_with_fallback(
        found,
        shapes,
        lambda: tuple(read(file, file).points for file in pair),
        registrars,
        seed=seed,
    )
    found = replace(found, notes=(*sides[0].notes, *sides[1].notes, *found.notes))
    record = facts(found, Task(pair, (unit, unit), registrars[0].name, seed))
    return record | {"seconds": found.seconds, "error": ""}


def _name(pair: Pair) -> str:
    return " -> ".join(pair)


def _stamp(pair: Pair) -> list[int]:
    """Size and time of change of both files; 0 for a file that is not there."""
    found = [Path(file).stat() if Path(file).is_file() else None for file in pair]
    return [number for each in found for number in ((each.st_size, each.st_mtime_ns) if each else (0, 0))]


def _write_table(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One row per pair: the verdict, T_target_source row by row, and in words what there is to say."""
    cells = [f"T{row}{column}" for row in range(4) for column in range(4)]
    text = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}  # any file name
    with replacing(path) as temporary, temporary.open("w", **text) as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, *cells, "seconds", "words"])
        for record in records:
            T = np.ravel(record["T_target_source"]).tolist() if "T_target_source" in record else [""] * 16
            words = record["error"] or " ".join(
                [record["reason"], *(f"({note})" for note in record["notes"])]
            )
            seconds = round(sum(record.get("seconds", {}).values()), 3)
            table.writerow([*(record.get(name, "") for name in COLUMNS), *T, seconds, words])
