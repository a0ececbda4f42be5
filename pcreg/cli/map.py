"""The verb `map`: many scans, in any order, into one map."""

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

from tabulate import tabulate

from pcreg.cli import options as shared
from pcreg.io.cloud import files_of
from pcreg.mapping.map import GRAPH, Map, files_in, is_map, is_of_run
from pcreg.registration.matching.prior import Prior
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import locked
from pcreg.runtime.progress import Steps

DESCRIPTION = """\
Put scans of one place together, in any order and without poses.

Each scan is described once, and pairs are screened. The most promising pairs are registered, and accepted or
rejected as by `pcreg register`, until the poses are well determined; accepted pairs that contradict others
are not used. Scans that no used pairs connect are in different maps, the largest first. All cores are used,
or with --device cuda a few processes that share the GPU. The same command continues a stopped run.

`pcreg map MAP NEW...` adds scans to a map: MAP is the folder of a map, and takes the result.

Exit status: 0 all scans are in one map, 1 some are not, 2 and 70 as for `pcreg register`.

--out DIR holds, as docs/maps.md explains,
  poses.txt     T_map_scan of each scan (TUM), also in poses_kitti.txt (KITTI); its translation is printed
  map.ply       all scans, each in its colour; if all scans state viewpoints, map.npz with these, too
  overview.png  a picture, unless --no-picture; viewer.html shows the map in a browser
  graph.json    scans and pairs; pairs.jsonl and descriptions/ serve to continue a run
  map_2, ...    the files of further maps
"""


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    parser = shared.parser_of("map", DESCRIPTION)
    add = parser.add_argument
    files = "files, patterns in quotes such as 'scans/*.ply', or the folder of a map, for its scans"
    add("scans", nargs="+", type=os.path.expanduser, metavar="SCAN", help=files)
    add("--viewpoint", **shared.SCAN_VIEWPOINT)
    sequence = "the scans are consecutive, each with its sensor at the origin: odometry joins neighbours"
    add("--sequence", action="store_true", help=sequence)
    up = "up direction in all scans, z or X,Y,Z; transforms keep it within 5 degrees"
    add("--gravity", type=shared.direction, metavar="UP", help=up)
    add("--no-picture", action="store_true", help="write no overview.png")
    add("--cluster", **shared.CLUSTER)
    json_words = "the content of graph.json, in one line,"
    shared.add_options(parser, out="map", voxel="chosen from the scans", units=("SCANS",), json=json_words)
    options = parser.parse_args(arguments)
    if options.out is parser.get_default("out"):
        options.out = next(filter(is_map, map(Path, options.scans)), options.out)
    return shared.run(options, _run)


def scans_of(folder: Path) -> dict[str, int | None]:
    """Paths of the scans of a map, from the working folder, and the number of the map of each."""
    graph = folder / GRAPH
    damaged = f"{graph}: is damaged ({{error}}); delete it, and name the scans"
    with refusing(damaged, OSError, ValueError, KeyError, TypeError):
        content = json.loads(graph.read_text())
        there = content.get("working_folder", os.getcwd())
        scans = {scan["name"]: scan["map"] for scan in content["scans"]}
        moved = not any(os.path.isfile(os.path.join(there, name)) for name in scans)  # along with the map
        here = "" if moved or there == os.getcwd() else there
        return {os.path.join(here, name): number for name, number in scans.items()}


def _check_frame(folder: Path, scans: dict[str, int | None]) -> None:
    """Raise InputError if the first scan of a map, in whose frame the map is, is missing."""
    first = next((scan for scan, number in scans.items() if number == 1), None)
    if first and not os.path.isfile(first):
        raise InputError(
            f"{folder / GRAPH}: {first}, in whose frame the map is, is missing; put it back, or name the "
            "scans that are left and another folder with --out"
        )


def _check_scans_there(folder: Path, paths: list[str]) -> None:
    """Raise InputError if `paths` has no scan of the map in a folder; print a note if some are missing."""
    there = set(map(os.path.abspath, scans_of(folder) if is_map(folder) else paths))
    left_out = there.difference(map(os.path.abspath, paths))
    if left_out == there:
        raise InputError(f"{folder}: holds the map of other scans; name another folder with --out")
    if left_out:
        count = f"{len(left_out)} of {len(there)} scans of this map, first {min(left_out)}"
        print(f"note: left out, as not named: {count}; the frame is that of the first scan named")


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Map the files and write the result; True if all are in one map."""
    from pcreg.mapping import mapping
    from pcreg.viz.map_files import write_map

    registrar = shared.registrar_of(options)
    prior = Prior(gravity=options.gravity)  # raises before anything is read
    maps = list(filter(is_map, map(Path, options.scans)))
    known: list[str] = []  # listed first, so that the frame of the map stays
    for folder in maps:
        _check_frame(folder, scans := scans_of(folder))
        known += scans
    named = [name for name in options.scans if Path(name) not in maps]
    paths = files_of(named, known, left_out=is_of_run)
    written, of_others = files_in(options.out)
    shared.refuse_to_overwrite([*paths, *of_others], *written)
    _check_scans_there(options.out, paths)
    with locked(options.out, "name another folder with --out"):
        read_as = {"units": options.units, "columns": options.columns, "viewpoint": options.viewpoint}
        found = mapping.run(
            registrar,
            paths,
            options.out,
            **read_as,
            prior=prior,
            sequence=options.sequence,
            workers=options.cluster,
            seed=options.seed,
        )
        if options.json:
            print(json.dumps(found.to_dict()), file=stdout, flush=True)
        _print_map(found)
        with Steps("writing"):
            written = write_map(
                options.out,
                found,
                lambda row: registrar.prepare(paths[row], **read_as),
                picture=not options.no_picture,
            )
    print(f"written: {', '.join(map(str, written))}")
    return found.is_whole


def _print_map(found: Map) -> None:
    """Print a line per map, and one per scan; flushed, since later steps may fail."""
    for number in range(1, found.count + 1):
        within = [edge for edge in found.edges if edge.used and found.number[edge.source] == number]
        print(f"map {number}: {len(found.scans(number))} scans, {len(within)} pairs in use")
    registered = [edge for edge in found.edges if edge.registered]
    unused = [edge for edge in registered if not edge.used]
    print(f"{len(found.edges)} pairs tried, {len(registered)} registered, {len(unused)} of them not used\n")
    used = Counter(end for edge in found.edges if edge.used for end in (edge.source, edge.target))
    rows = []
    for row, name in enumerate(found.names):
        number = int(found.number[row])
        place = [f"{value:.2f}" for value in found.T_map_scan[row][:3, 3]] if number else ["", "", ""]
        rows.append([name, number or "-", used[row], *place, found.errors[row] or found.why_alone(row)])
    print(tabulate(rows, headers=["scan", "map", "pairs", "x", "y", "z", "note"], disable_numparse=True))
    for edge in unused:
        print(f"not used: {found.names[edge.source]} to {found.names[edge.target]}: {edge.unused_because}")
    sys.stdout.flush()
