"""The verb `map`: many scans, in any order, into one map."""

import argparse
import glob
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tabulate import tabulate

from pcreg.cli import options as shared
from pcreg.io.cloud import natural
from pcreg.registration.matching.prior import Prior
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import check_folder, locked
from pcreg.runtime.progress import Steps

if TYPE_CHECKING:
    from pcreg.mapping.map import Map

DESCRIPTION = """\
Put scans of one place together, in any order and without poses.

Each scan is described once and every two are screened; those that promise most are registered, with the
verdict of `pcreg register`, until the poses are well determined. Pairs that contradict the others are not
used. All cores work, or with --device cuda a few processes that share the GPU, and run again, the command
continues.
Scans that no used pair joins are in different maps; the largest is the first. Exit status: 0 all scans are in
one map, 1 some are not, 2 bad input or no place to write (one sentence on stderr), 70 a fault of the program.

--out DIR holds
  poses.txt        a line per scan, `row tx ty tz qx qy qz qw` (TUM): T_map_scan moves a scan into the frame
                   of the first one; comments say which row is which file
  poses_kitti.txt  the same poses, 12 numbers a line (KITTI)
  map.ply          all scans, thinned, each in its colour
  map.npz          the same with `viewpoints`, if files or --viewpoint state where the sensor of each scan
                   stood; `pcreg locate` uses them
  overview.png     unless --no-picture: the map from above and from the side
  viewer.html      the map, to be turned round in a browser, its scans switched on and off, its pairs seen
  graph.json       the scans, each with its map, its pose or why it cannot be used; and every pair that was
                   tried, with its verdict and confidence, whether it is used, and why not
  map_2, ...       the same files of further maps, but for graph.json
  pairs.jsonl      the records behind it, with descriptions/ what a run that was stopped continues from
"""


def main(arguments: list[str] | None = None, program: str = "pcreg map") -> int:
    """Run the command line and return its exit status."""
    parser = shared.parser_of(program, DESCRIPTION)
    add = parser.add_argument
    add("scans", nargs="+", metavar="SCAN", help="files, or patterns in quotes such as 'scans/*.ply'")
    shared.add_scan_viewpoint(parser)
    sequence = (
        "the scans, in natural order, are consecutive ones of one sensor at their origin: odometry "
        "(small_gicp) joins neighbours, and loops are found as without"
    )
    add("--sequence", action="store_true", help=sequence)
    up = "which way is up in all scans, z or X,Y,Z: only motions that keep it, to 5 degrees, are tried"
    add("--gravity", type=shared.direction, metavar="UP", help=up)
    add("--no-picture", action="store_true", help="write no overview.png")
    shared.add_cluster(parser)
    json_words = "the content of graph.json, in one line,"
    shared.add_options(parser, out="map", voxel="chosen from the scans", units=("SCANS",), json=json_words)
    return shared.run(parser.parse_args(arguments), _run)


def paths_of(named: list[str]) -> list[str]:
    """The files that are named or match a pattern, each once, in natural order: scan_2 before scan_10.

    Raises InputError for a pattern that no file matches, and for fewer than two files.
    """
    found: set[str] = set()
    for name in named:
        matching = [name] if Path(name).is_file() else glob.glob(name, recursive=True)
        if not matching:
            raise InputError(f"{name}: no such file, and no file matches; put a pattern in quotes")
        found.update(each for each in matching if Path(each).is_file())
    if len(found) < 2:
        raise InputError(f"{' '.join(named)}: {len(found)} files match; a map needs two or more")
    return sorted(found, key=natural)


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Map the files and write the result; whether all are in one map."""
    from pcreg.mapping import mapping
    from pcreg.viz.map_files import write_map

    shared.check(options)
    prior = Prior(gravity=options.gravity)  # refused before anything is read
    paths = paths_of(options.scans)
    check_folder(options.out)
    with locked(options.out, "name another folder with --out"):
        registrar = shared.registrar_of(options)
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


def _print_map(found: "Map") -> None:
    """Print a line per scan, and one per map; flushed, since later steps may fail."""
    used = Counter(end for edge in found.edges if edge.used for end in (edge.source, edge.target))
    rows = []
    for row, name in enumerate(found.names):
        number = int(found.number[row])
        place = [f"{value:.2f}" for value in found.T_map_scan[row][:3, 3]] if number else ["", "", ""]
        why = found.errors[row] or ("" if number else "belongs to no other scan")
        rows.append([name, number or "-", used[row], *place, why])
    print(tabulate(rows, headers=["scan", "map", "pairs", "x", "y", "z", ""], disable_numparse=True))
    print()
    for number in range(1, found.count + 1):
        within = [edge for edge in found.edges if edge.used and found.number[edge.source] == number]
        print(f"map {number}: {len(found.scans(number))} scans, {len(within)} pairs in use")
    registered = [edge for edge in found.edges if edge.registered]
    unused = [edge for edge in registered if not edge.used]
    print(f"{len(found.edges)} pairs tried, {len(registered)} registered, {len(unused)} of them not used")
    for edge in unused:
        print(f"not used: {found.names[edge.source]} to {found.names[edge.target]}: {edge.unused_because}")
    sys.stdout.flush()
