"""Registration of many pairs of clouds: a record and a table row for each pair.

Answers are those of `register`. Each file is described once per scale, in a folder that worker processes
share. A run that was stopped continues. A cloud that cannot be used affects its own pairs alone.
"""

import csv
import io
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from glob import has_magic
from itertools import chain, pairwise
from os.path import expanduser
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.io.cloud import files_of
from pcreg.io.formats.text import is_number
from pcreg.registration.clouds.inputs import ViewpointOption, check_viewpoint
from pcreg.registration.clouds.stored import CloudFile, StoredCloud, state_of
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import record_of
from pcreg.runtime.errors import InputError, attempted, in_short, refusing
from pcreg.runtime.files import replacing
from pcreg.runtime.progress import progress
from pcreg.runtime.records import REGISTERING, Records, code_fingerprint
from pcreg.runtime.workers import Workers, executor_of, map_unordered

log = logging.getLogger(__name__)

# In the folder of a run: records, the table of a batch, and the folder of descriptions
PAIRS, TABLE, DESCRIPTIONS = "pairs.jsonl", "table.csv", "descriptions"
OTHER_RUN = "name another folder (--out, or folder=)"
COLUMNS = ("source", "target", "registered", "confidence", "inliers", "overlap", "rmse", "voxel")
Pair = tuple[str, str]  # the files of source and target


def pairs_of(listed: str, *more: str, left_out: Callable[[str], bool] = lambda path: False) -> list[Pair]:
    """The pairs (source, target) of a list, or of files and patterns.

    A list is a .csv, .tsv or .txt file with lines `source,target`, or with a semicolon or tab. A first line
    of these words is a heading, and paths are relative to the list's folder. Other files, in natural order
    such as scan_2 before scan_10, form pairs with the file before each. Patterns do not match files that are
    `left_out`. Raises InputError if there are no pairs.
    """
    path = Path(expanduser(listed))
    is_file = os.path.isfile(path) or not has_magic(listed)
    if more or not is_file or path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return [(later, earlier) for earlier, later in pairwise(files_of((listed, *more), left_out=left_out))]
    if not os.path.exists(path):
        raise InputError(f"{listed}: no such file; check the path")
    unusable = f"{listed}: cannot be read as a list of pairs ({{error}}); write lines SOURCE,TARGET"
    with refusing(unusable, OSError, ValueError, csv.Error):
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")  # as file names are
        lines = list(filter(str.strip, text.splitlines()))
        separator = next((mark for mark in "\t;," if all(mark in line for line in lines)), ",")
        rows = list(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
        if "\0" in text:
            raise ValueError("no text, or in UTF-16")
    named = {}
    for number, row in enumerate(rows, start=1):
        names = [name.strip() for name in row]
        if not any(names) or (number == 1 and [name.lower() for name in names[:2]] == ["source", "target"]):
            continue
        if len(names) < 2 or not all(names[:2]) or all(map(is_number, names)):
            raise InputError(f"{listed}: line {number} does not name two files; write SOURCE,TARGET")
        named[tuple(str(path.parent / expanduser(name)) for name in names[:2])] = None
    if not named:
        raise InputError(f"{listed}: holds no pairs; write lines SOURCE,TARGET")
    return list(named)


def settings_of(
    registrar: Registrar, unit: str, viewpoint: Any, columns: int | None, prior: Prior, seed: int
) -> dict[str, Any]:
    """Settings on which the records of pairs depend."""
    return {
        "descriptor": registrar.descriptor,
        "weights": registrar.fingerprint,
        "voxel": registrar.voxel,
        "unit": unit,
        "viewpoint": viewpoint,
        "columns": columns,
        "seed": seed,
        "prior": prior.to_dict(),
        "device": registrar.device,
        "code": code_fingerprint(*REGISTERING),
    }


def run(
    registrar: Registrar,
    pairs: Sequence[Pair],
    folder: Path,
    *,
    unit: str = "m",
    viewpoint: ViewpointOption = "auto",
    columns: int | None = None,
    prior: Prior = ANY,
    seed: int = 0,
    workers: Workers = None,
) -> list[dict[str, Any]]:
    """Register pairs; return their records in order, which `folder` keeps, with a table.

    Each answer is that of the registrar for this pair alone. A pair on record is registered again only if one
    of its files has changed or could not be read. Answers do not depend on the number of `workers`: by
    default one per core, or a few that share the registrar's GPU. Raises InputError for settings that differ
    from those of the records, and if a worker lacks the registrar's device.
    """
    option = check_viewpoint(viewpoint)
    settings = settings_of(registrar, unit, option, columns, prior, seed)
    records = Records(folder / PAIRS, settings, OTHER_RUN)
    todo = [
        pair
        for pair in dict.fromkeys(pairs)
        if records.by_pair.get(name_of(pair), {}).get("stamp") != [*state_of(pair[0]), *state_of(pair[1])]
    ]
    if todo:
        with executor_of(workers, registrar.device) as executor:
            log.info("%d of %d pairs to do", len(todo), len(pairs))
            paths = dict.fromkeys(chain.from_iterable(todo))
            files = [CloudFile(path, unit, columns, option) for path in paths]
            files = examined_files(executor, registrar, files, needed=not records.by_pair)
            work = Work(registrar, files, folder / DESCRIPTIONS, seed, prior)
            describe_first(executor, work, todo)
            registered = map_unordered(executor, Work.register, (work,), todo)
            for pair, record in progress(registered, "register", len(todo)):
                records.add(record | {"pair": name_of(pair), "stamp": work.stamp(pair)})
    records.order([name_of(pair) for pair in pairs])
    chosen = [records.by_pair[name_of(pair)] | {"source": pair[0], "target": pair[1]} for pair in pairs]
    _write_table(folder / TABLE, chosen)
    return chosen


@dataclass(frozen=True)
class Work:
    """Data that worker processes share to register pairs of files."""

    registrar: Registrar
    files: dict[str, CloudFile]
    folder: Path  # of descriptions
    seed: int
    prior: Prior = ANY
    thorough: bool = True  # as in `Registrar.register`

    def errors(self, pair: Pair) -> list[str]:
        """The errors of the files of a pair that cannot be used."""
        return [self.files[path].error for path in pair if self.files[path].error]

    def stamp(self, pair: Pair) -> list[int]:
        """The states, as by `state_of`, in which the files of a pair were read."""
        return [number for path in pair for number in self.files[path].state]

    def clouds(self, pair: Pair) -> tuple[StoredCloud, StoredCloud]:
        return self.cloud(pair[0]), self.cloud(pair[1])

    def cloud(self, path: str) -> StoredCloud:
        return StoredCloud(self.files[path], self.folder, self.registrar.device)

    def describe(self, item: tuple[str, float]) -> None:
        """Describe the cloud of a file at a voxel size in metres; `register` reports errors."""
        path, voxel = item
        attempted(lambda: self.cloud(path).at(self.registrar.at(voxel).descriptor))

    def register(self, pair: Pair) -> dict[str, Any]:
        """The record of a pair."""
        refused = {"source": pair[0], "target": pair[1], "registered": False}
        if errors := self.errors(pair):
            return refused | {"error": "; ".join(errors)}
        clouds = self.clouds(pair)
        options = {"seed": self.seed, "prior": self.prior, "thorough": self.thorough}
        found, error = attempted(lambda: self.registrar.register(*clouds, **options))
        if found is None:
            return refused | {"error": error}
        units = self.files[pair[0]].units, self.files[pair[1]].units
        more = {"error": "", "local_covariance": found.local_covariance}
        return record_of(found, pair, units, self.registrar.descriptor, self.seed) | more


def examined_files(
    executor: Executor | None, registrar: Registrar, files: Sequence[CloudFile], *, needed: bool = True
) -> dict[str, CloudFile]:
    """The files by path, each read once, with its own voxel size unless the registrar has one for all.

    Raises InputError if some are `needed` and none can be used.
    """
    if executor is not None:
        registrar.wait_for_kernels()  # else all workers of a GPU would compile them at the same time
    found = map_unordered(executor, _examined, (registrar,), files)
    examined = {file.path: file for _, file in progress(found, "read", len(files))}
    if noted := [f"{file.path}: {note}" for file in examined.values() for note in file.notes]:
        log.warning(in_short(noted))
    if needed and all(file.error for file in examined.values()):
        raise InputError(f"none of the {len(files)} files can be used: {examined[files[0].path].error}")
    return examined


def _examined(registrar: Registrar, file: CloudFile) -> CloudFile:
    return file.examined(registrar.device, sized=registrar.voxel is None)


def describe_first(executor: Executor | None, work: Work, pairs: Sequence[Pair]) -> None:
    """Describe each cloud once at every scale that is the first one of a pair."""
    first: dict[tuple[str, float], None] = {}  # an ordered set
    for pair in pairs:
        if not work.errors(pair):
            voxel = next(work.registrar.scales(*work.clouds(pair))).voxel
            first |= dict.fromkeys((path, voxel) for path in pair)
    described = map_unordered(executor, Work.describe, (work,), first)
    for _ in progress(described, "describe", len(first)):
        pass


def name_of(pair: Pair) -> str:
    """The name of a pair on record, the same from any working folder."""
    return " -> ".join(os.path.abspath(expanduser(path)) for path in pair)


def _write_table(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write a row per pair: verdict, T_target_source by rows, seconds, and reason with notes, or error."""
    cells = [f"T{row}{column}" for row in range(4) for column in range(4)]
    text = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}  # for any file name
    with replacing(path) as temporary, temporary.open("w", **text) as file:
        table = csv.writer(file)
        table.writerow([*COLUMNS, *cells, "seconds", "message"])
        for record in records:
            values = record | record.get("evidence", {})
            T = np.ravel(record["T_target_source"]).tolist() if "T_target_source" in record else [""] * 16
            notes = [f"({note})" for note in record.get("notes", ())]
            message = record["error"] or " ".join([record["reason"], *notes])
            seconds = round(sum(record.get("seconds", {}).values()), 3)
            table.writerow([*(values.get(name, "") for name in COLUMNS), *T, seconds, message])
