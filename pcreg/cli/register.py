"""The verb `register`: two clouds, or the pairs of a list."""

import argparse
import json
from pathlib import Path
from typing import TextIO

from pcreg.cli import options as shared
from pcreg.cli import pair
from pcreg.io.motion import read_motion
from pcreg.registration.matching.prior import Prior
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import locked

DESCRIPTION = """\
Register two point clouds, or the pairs of a list.

Prints the verdict and T_target_source, the transform that moves SOURCE into the frame of TARGET. Files are
.ply .pcd .xyz .txt .csv .asc .pts .npy .npz .las .laz .e57 .obj .off .stl, or .bin of KITTI or nuScenes. Exit
status: 0 registered, 1 not registered, 2 bad input or no place to write, 70 a fault of the program.

--out DIR holds
  result.json   the verdict, the transform and further figures; docs/register.md explains every key
  overview.png  unless --no-picture: before and after, distances, and sections through the overlap
  aligned.ply   moved source (orange) and target (blue) in one cloud, up to five million points of each
  viewer.html   with --html: both clouds in a browser

With --batch, LIST is a .csv, .tsv or .txt with lines SOURCE,TARGET, relative to the folder of LIST; or files
or a pattern in quotes such as 'scans/*.ply', where each file is registered to the one before it, scan_2
before scan_10. A pair has the same result as alone. All cores are used, or with --device cuda a few processes
that share the GPU. The same command continues a stopped run. DIR then holds table.csv, with a line per pair,
pairs.jsonl, with the records that --json prints, and descriptions/. Exit status: 0 all registered, 1 some
not, 2 and 70 as above.
"""


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    return shared.run(parsed(arguments), run)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Parse a command line; exits with status 2 if it cannot be parsed."""
    parser = shared.parser_of("register", DESCRIPTION)
    add = parser.add_argument
    add("source", type=Path, nargs="?", metavar="SOURCE")
    add("target", type=Path, nargs="?", metavar="TARGET")
    add("--batch", nargs="+", metavar="LIST", help="many pairs: a list, or files or patterns")
    add("--cluster", **shared.CLUSTER)
    pair.add_options(parser, "registration")
    add(
        "--gravity",
        action="append",
        type=shared.direction,
        metavar="UP",
        help="up direction, z or X,Y,Z; the transform keeps it within 5 degrees. Give it once for both "
        "clouds, or twice, for source and target",
    )
    near = "a file with T_target_source, as for `pcreg verify`; only transforms near it are searched"
    add("--near", type=Path, metavar="TRANSFORM", help=near)
    within = "with --near: largest shift of the middle of the source, and largest rotation, from TRANSFORM"
    add("--within", nargs=2, type=float, metavar=("METRES", "DEGREES"), help=within)
    scale = (
        "estimate the scale s of the source, too, for example after structure from motion; T_target_source "
        "is then [s R, t]; takes about seven times as long"
    )
    add("--scale", action="store_true", help=scale)
    return parser.parse_args(arguments)


def _check_search(options: argparse.Namespace) -> None:
    """Raise InputError for options that are missing, or that cannot be used together."""
    if options.scale and (options.batch or options.near):
        raise InputError("--scale is for two clouds, without --near; leave one of the two out")
    if not options.batch:
        if options.cluster is not None:
            raise InputError("--cluster shares the pairs of --batch; leave it out for one pair")
        if not options.target:
            raise InputError("two files are needed, SOURCE TARGET; --help shows all options")
        return
    if options.source or options.html or options.no_picture:
        raise InputError(
            "--batch takes one list and writes one table; leave out SOURCE, TARGET, --html and --no-picture"
        )
    if len(set(options.units or ())) > 1 or len(options.viewpoint or ()) > 1:
        raise InputError("the files of a batch have one unit and one --viewpoint; give each option once")


def run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Register two clouds or the pairs of a list; True if all are registered."""
    up = options.gravity
    near = read_motion(options.near) if options.near else None
    within = tuple(options.within) if options.within else None
    prior = Prior(gravity=up and (up[0] if len(up) == 1 else tuple(up)), near=near, within=within)
    _check_search(options)
    if options.batch:
        return _batch(options, stdout, prior)
    shared.refuse_to_overwrite(filter(None, [options.near]), options.out / "result.json")
    return pair.run(options, stdout, prior=prior)


def _batch(options: argparse.Namespace, stdout: TextIO, prior: Prior) -> bool:
    """Register the pairs of --batch; True if all are registered."""
    from pcreg.mapping.map import is_of_run
    from pcreg.registration import batch

    shared.refuse_to_overwrite(options.batch, options.out / batch.TABLE)
    pairs, registrar = batch.pairs_of(*options.batch, left_out=is_of_run), shared.registrar_of(options)
    with locked(options.out, "name another folder with --out"):
        records = batch.run(
            registrar,
            pairs,
            options.out,
            unit=shared.for_both(options, "units", "m")[0],
            viewpoint=shared.for_both(options, "viewpoint", "auto")[0],
            columns=options.columns,
            seed=options.seed,
            prior=prior,
            workers=options.cluster,
        )
    if options.json:
        for record in records:
            print(json.dumps(record), file=stdout)
    done = sum(record["registered"] for record in records)
    if errors := [record["error"] for record in records if record["error"]]:
        print(f"{len(errors)} cannot be tried; the first: {errors[0]}")
    print(f"{done} of {len(records)} pairs registered\nwritten: {options.out / batch.TABLE}")
    return done == len(records)
