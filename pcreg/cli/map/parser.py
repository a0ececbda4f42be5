"""The options of `map`, and its help."""

import argparse
import glob
from pathlib import Path

from pcreg.cli.register.parser import add_cluster, add_scan_viewpoint, add_shared_options, direction
from pcreg.io.natural_order import natural
from pcreg.registration.clouds.inputs import METRES
from pcreg.runtime.errors import InputError

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


def parsed(arguments: list[str] | None, program: str) -> argparse.Namespace:
    """The options of a command line, as `program` has them; status 2 for one that cannot be read."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(program, description=DESCRIPTION, formatter_class=formatter)
    parser.add_argument(
        "scans", nargs="+", metavar="SCAN", help="files, or patterns in quotes such as 'scans/*.ply'"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", default=Path("map"), help="default: %(default)s")
    parser.add_argument(
        "--voxel", type=float, help="metres; the scale of everything (default: chosen from the scans)"
    )
    parser.add_argument(
        "--units",
        choices=list(METRES),
        default="m",
        help=f"of the coordinates, one of {' '.join(METRES)} (default: %(default)s)",
    )
    add_scan_viewpoint(parser)
    parser.add_argument(
        "--sequence",
        action="store_true",
        help="the scans, in natural order, are consecutive ones of one sensor at their origin: odometry "
        "(small_gicp) joins neighbours, and loops are found as without",
    )
    parser.add_argument(
        "--gravity",
        type=direction,
        metavar="UP",
        help="which way is up in all scans, z or X,Y,Z: only motions that keep it, to 5 degrees, are tried",
    )
    parser.add_argument("--no-picture", action="store_true", help="write no overview.png")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the content of graph.json alone on stdout, in one line; everything else goes to stderr",
    )
    add_cluster(parser)
    add_shared_options(parser)
    return parser.parse_args(arguments)


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
