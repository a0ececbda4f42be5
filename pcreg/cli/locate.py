"""The verb `locate`: scans in a map."""

import argparse
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tabulate import tabulate

from pcreg.cli import options as shared
from pcreg.mapping.map import COLORED, VIEWED
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.registration.strategy.prepared_map import PreparedMap
from pcreg.runtime.errors import InputError, attempted
from pcreg.runtime.files import check_folder, write_text
from pcreg.runtime.progress import progress

DESCRIPTION = """\
Find scans in a map.

MAP is a file as of `pcreg register`, or a folder that `pcreg map` wrote. Its regions are described once, at
the scale of the scans; each scan is registered to those that promise most, with the verdict of
`pcreg register`. Where the map's sensors stood is estimated region by region unless its file states it for
each point, as map.npz in a folder does.

Prints a line per scan, and writes located.json into --out DIR: a list with `scan` and what result.json of
`pcreg register` has of a motion and its verdict, where T_target_source moves the scan into the map; of a scan
that cannot be used `scan` and `error`. Exit status: 0 all scans are found; 1 some are not; 2 bad input or no
place to write; 70 a fault of the program.
"""


def main(arguments: list[str] | None = None, program: str = "pcreg locate") -> int:
    """Run the command line and return its exit status."""
    parser = shared.parser_of(program, DESCRIPTION)
    parser.add_argument("scans", nargs="+", type=Path, metavar="SCAN")
    parser.add_argument("map", type=Path, metavar="MAP")
    parser.add_argument("--viewpoint", **shared.SCAN_VIEWPOINT)
    json_words = "the content of located.json, a line per scan,"
    units = ("SCANS", "MAP")
    shared.add_options(parser, out="located", voxel="that of each scan", units=units, json=json_words)
    return shared.run(parser.parse_args(arguments), _run)


def map_file(path: Path) -> Path:
    """The file of a map that is one, or that is in a folder of `pcreg map`; InputError if that holds none."""
    if not path.is_dir():
        return path
    for name in (VIEWED, COLORED):
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path}: holds no map.ply; name a file, or a folder that `pcreg map` wrote")


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    shared.check(options)
    check_folder(options.out)
    registrar, path = shared.registrar_of(options), map_file(options.map)
    target = registrar.prepare(path, units=options.units[1], columns=options.columns, is_map=True)
    located = []
    for record in progress(_located(options, registrar, target), "locate", len(options.scans)):
        located.append(record)
        if options.json:
            print(json.dumps(record), file=stdout, flush=True)
    if all("error" in record for record in located):
        raise InputError(located[0]["error"])
    print(tabulate([_line(record) for record in located], headers=["scan", "", "x", "y", "z", ""]))
    write_text(options.out / "located.json", json.dumps(located, indent=1) + "\n")
    print(f"written: {options.out / 'located.json'}")
    return all(record.get("registered") for record in located)


def _located(
    options: argparse.Namespace, registrar: Registrar, target: PreparedMap
) -> Iterator[dict[str, Any]]:
    """A record per scan; one that cannot be used spoils no other."""
    settings = {"units": options.units[0], "columns": options.columns, "viewpoint": options.viewpoint}

    def find(path: Path) -> Registration:
        return registrar.register(registrar.prepare(path, **settings), target, seed=options.seed)

    for path in options.scans:
        found, error = attempted(partial(find, path))
        answer = found.to_dict() | {"seconds": found.seconds} if found else {"error": error}
        yield {"scan": str(path), **answer}


def _line(record: dict[str, Any]) -> list[str]:
    """Columns printed for a scan."""
    if "error" in record:
        return [record["scan"], "cannot be used", "", "", "", record["error"]]
    place = [f"{row[3]:.2f}" for row in record["T_target_source"][:3]]
    verdict = f"found, confidence {record['confidence']:.2f}" if record["registered"] else "not found"
    return [record["scan"], verdict, *(place if record["registered"] else ["", "", ""]), record["reason"]]
