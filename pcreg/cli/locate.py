"""The verb `locate`: scans in a map."""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tabulate import tabulate

from pcreg.cli import options as shared
from pcreg.io.cloud import files_of
from pcreg.mapping.map import COLORED, VIEWED, folder_of, is_of_run
from pcreg.runtime.errors import InputError, attempted
from pcreg.runtime.files import write_text
from pcreg.runtime.progress import progress
from pcreg.runtime.workers import executor_of, map_unordered

DESCRIPTION = """\
Find scans in a map.

MAP is a file as of `pcreg register`, or a folder that `pcreg map` wrote. Its regions are described once, at
the scale of the scans; each scan is registered to the most promising ones, with the verdict of
`pcreg register`. Sensor positions of the map are estimated region by region, unless its file states them for
each point, as map.npz in a folder does.

Prints a line per scan, scan_2 before scan_10, and writes the same as a list into located.json in --out DIR.
Each has `scan`, and the transform and verdict as in result.json of `pcreg register`; T_target_source moves
the scan into the map. A scan that cannot be used has `scan` and `error`. Exit status: 0 all scans are found;
1 some are not; 2 bad input or no place to write; 70 a fault of the program.
"""


def main(arguments: list[str] | None = None, program: str = "pcreg locate") -> int:
    """Run the command line and return its exit status."""
    parser = shared.parser_of(program, DESCRIPTION)
    files = "files, or patterns in quotes such as 'scans/*.ply'"
    parser.add_argument("scans", nargs="+", metavar="SCAN", help=files)
    parser.add_argument("map", type=shared.folder, metavar="MAP")
    parser.add_argument("--viewpoint", **shared.SCAN_VIEWPOINT)
    json_words = "the content of located.json, a line per scan,"
    units = ("SCANS", "MAP")
    shared.add_options(parser, out="located", voxel="that of each scan", units=units, json=json_words)
    return shared.run(parser.parse_args(arguments), _run)


def map_file(path: Path) -> Path:
    """The file of a map that is one, or that is in a folder of `pcreg map`; InputError if that holds none."""
    if not os.path.isdir(path):  # Path.is_dir raises where one may not search
        return path
    for name in (VIEWED, COLORED):
        if os.path.isfile(path / name):
            return path / name
    raise InputError(f"{path}: holds no map.ply; name a file, or a folder that `pcreg map` wrote")


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    shared.check(options)
    registrar, path = shared.registrar_of(options), map_file(options.map)
    matching = files_of(options.scans, least=1, left_out=is_of_run)
    scans = [scan for scan in matching if os.path.realpath(scan) != os.path.realpath(path)] or matching
    of_scans, of_map = shared.for_both(options, "units", "m")
    if path != options.map:
        of_map = "m"  # of what `pcreg map` wrote
        if os.path.isdir(folder_of(options.map, 2)):
            print(f"note: {options.map} holds several maps; the largest is searched, and not map_2")
    target = registrar.prepare(path, units=of_map, columns=options.columns, is_map=True)
    settings = {"units": of_scans, "columns": options.columns, "viewpoint": options.viewpoint}
    found, work = {}, (registrar, target, settings, options.seed)
    for path, record in progress(_records(work, scans), "locate", len(scans)):
        found[path] = {"scan": path, **record}
        if options.json:
            print(json.dumps(found[path]), file=stdout, flush=True)
    located = [found[path] for path in scans]
    if all("error" in record for record in located):
        raise InputError(located[0]["error"])
    if notes := [note for record in located for note in record.get("notes", ())]:
        print(f"note: {notes[0]}{f', and {len(notes) - 1} further notes' if notes[1:] else ''}")
    count = sum(record.get("registered", False) for record in located)
    print(f"{count} of {len(located)} scans found\n")
    headers = ["scan", "verdict", "x", "y", "z", "reason"]
    print(tabulate([_line(record) for record in located], headers, disable_numparse=True))
    write_text(options.out / "located.json", json.dumps(located, indent=1) + "\n")
    print(f"written: {options.out / 'located.json'}")
    return all(record.get("registered") for record in located)


def _records(work: tuple[Any, ...], paths: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and record of each scan, in any order; workers get the map with the regions of the first scan."""
    first, *others = paths
    yield first, _record(*work, first)
    on_cpu = work[0].device == "cpu"
    with executor_of(None if on_cpu and len(others) > 1 else 0) as executor:
        yield from map_unordered(executor, _record, work, others)


def _record(registrar: Any, target: Any, settings: dict[str, Any], seed: int, path: str) -> dict[str, Any]:
    """The record of a scan; one that cannot be used spoils no other."""
    found, error = attempted(
        lambda: registrar.register(registrar.prepare(path, **settings), target, seed=seed)
    )
    return found.to_dict() | {"seconds": found.seconds} if found else {"error": error}


def _line(record: dict[str, Any]) -> list[str]:
    """Columns printed for a scan."""
    if "error" in record:
        return [record["scan"], "cannot be used", "", "", "", record["error"]]
    place = [f"{row[3]:.2f}" for row in record["T_target_source"][:3]]
    verdict = f"found, confidence {record['confidence']:.2f}" if record["registered"] else "not found"
    return [record["scan"], verdict, *(place if record["registered"] else ["", "", ""]), record["reason"]]
