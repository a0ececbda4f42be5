"""The verb `locate`: scans in a map."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TextIO

from tabulate import tabulate

from pcreg.cli import options as shared
from pcreg.geometry.se3 import transform
from pcreg.io.cloud import files_of
from pcreg.mapping.map import folder_of, is_of_run
from pcreg.registration.batch import OTHER_RUN, settings_of
from pcreg.registration.clouds.stored import state_of
from pcreg.registration.matching.prior import ANY
from pcreg.registration.strategy.prepared_map import map_file
from pcreg.runtime.errors import InputError, attempted, in_short
from pcreg.runtime.files import locked, write_text
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import executor_of, map_unordered

DESCRIPTION = """\
Find scans in a map.

MAP is a point cloud file, or a folder that `pcreg map` wrote. Regions of the map are described once, at the
voxel size of the scans. Each scan is registered to the most promising regions, and accepted or rejected as a
pair is. Sensor positions are estimated for each region, unless the file has one per point, as map.npz does.

Prints a line per scan, scan_2 before scan_10; x y z is the middle of the scan's box, in the frame of the map.
--out DIR holds located.json, a list with an entry per scan: `scan`, its `middle`, and transform and verdict
as in result.json of `pcreg register`, where T_target_source moves the scan into the map; or `scan` and
`error` if the scan cannot be used. A stopped run continues from unfinished.jsonl. Exit status: 0 all scans
found, 1 some not, 2 and 70 as for `pcreg register`.
"""


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    parser = shared.parser_of("locate", DESCRIPTION)
    files = "files, or patterns in quotes such as 'scans/*.ply'"
    parser.add_argument("scans", nargs="+", metavar="SCAN", help=files)
    parser.add_argument("map", type=shared.folder, metavar="MAP")
    parser.add_argument("--viewpoint", **shared.SCAN_VIEWPOINT)
    json_words = "the content of located.json, a line per scan,"
    units = ("SCANS", "MAP")
    shared.add_options(parser, out="located", voxel="that of each scan", units=units, json=json_words)
    return shared.run(parser.parse_args(arguments), _run)


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    registrar, path = shared.registrar_of(options), map_file(options.map)
    matching = files_of(options.scans, least=1, left_out=is_of_run)
    scans = [scan for scan in matching if os.path.realpath(scan) != os.path.realpath(path)] or matching
    unit, unit_of_map = shared.for_both(options, "units", "m")
    if path != options.map and os.path.isdir(folder_of(options.map, 2)):
        print(f"note: {options.map} holds several maps; the largest is searched, and not map_2")
    target = registrar.prepare(options.map, units=unit_of_map, columns=options.columns, is_map=True)
    run = settings_of(registrar, unit, options.viewpoint, options.columns, ANY, options.seed)
    run["map"] = [os.path.abspath(path), *state_of(str(path)), unit_of_map]
    settings = {"units": unit, "columns": options.columns, "viewpoint": options.viewpoint}
    several = len(scans) > 1  # a single scan leaves nothing to continue
    with locked(options.out, "name another folder with --out") if several else nullcontext():
        records = Records(options.out / "unfinished.jsonl", run, OTHER_RUN) if several else None
        located = []
        for record in _in_order(records, scans, (registrar, target, settings, options.seed)):
            located.append(record)
            if options.json:
                print(json.dumps(record), file=stdout, flush=True)
        if all("error" in record for record in located):
            raise InputError(located[0]["error"])
        _print(located)
        write_text(options.out / "located.json", json.dumps(located, indent=1) + "\n")
        if records:
            records.path.unlink(missing_ok=True)
    print(f"written: {options.out / 'located.json'}")
    return all(record.get("registered") for record in located)


def _in_order(records: Records | None, scans: list[str], work: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yield the record of each scan, in order; `records` keeps those of usable scans for a continuation."""
    states, found = {scan: [*state_of(scan)] for scan in scans}, {}
    for scan in scans if records else ():
        kept = records.by_pair.get(os.path.abspath(scan))
        if kept and kept["stamp"] == states[scan]:
            found[scan] = kept["found"]
    todo = [scan for scan in scans if scan not in found]
    done = progress(_records(work, todo), "locate", len(todo))
    for scan in scans:
        while scan not in found:
            other, record = next(done)
            found[other] = record
            if records and "error" not in record:
                records.add({"pair": os.path.abspath(other), "stamp": states[other], "found": record})
        yield {"scan": scan, **found[scan]}
    for _ in done:  # ends the progress bar and the workers
        pass


def _records(work: tuple[Any, ...], paths: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and record of each scan, in any order; workers start once the regions of the map are described."""
    left = iter(paths)
    for path in left:
        record = _record(*work, path)
        yield path, record
        if "error" not in record:
            break
    others, on_cpu = list(left), work[0].device == "cpu"
    with executor_of(None if on_cpu and len(others) > 1 else 0) as executor:
        yield from map_unordered(executor, _record, work, others)


def _record(registrar: Any, target: Any, settings: dict[str, Any], seed: int, path: str) -> dict[str, Any]:
    """Record of a scan, or its error if the scan cannot be used."""

    def located() -> dict[str, Any]:
        scan = registrar.prepare(path, **settings)
        found = registrar.register(scan, target, seed=seed)
        middle = transform(found.T_target_source, scan.cloud.box.mean(0))
        return found.to_dict() | {"middle": middle.tolist(), "seconds": found.seconds}

    record, error = attempted(located)
    return record or {"error": error}


def _print(located: list[dict[str, Any]]) -> None:
    """Print the notes, the number of scans found, and a line per scan."""
    if notes := [note for record in located for note in record.get("notes", ())]:
        print(f"note: {in_short(notes)}")
    count = sum(record.get("registered", False) for record in located)
    print(f"{count} of {len(located)} scans found\n")
    headers = ["scan", "verdict", "x", "y", "z", "reason"]
    print(tabulate([_line(record) for record in located], headers, disable_numparse=True))


def _line(record: dict[str, Any]) -> list[str]:
    """Columns printed for a scan."""
    if "error" in record:
        return [record["scan"], "cannot be used", "", "", "", record["error"]]
    place = [f"{value:.2f}" for value in record["middle"]]
    verdict = f"found, confidence {record['confidence']:.2f}" if record["registered"] else "not found"
    return [record["scan"], verdict, *(place if record["registered"] else ["", "", ""]), record["reason"]]
