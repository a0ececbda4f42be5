"""The options of `register`, and its help."""

import argparse
from pathlib import Path

from pcreg.io.motion import read_motion
from pcreg.registration.clouds.inputs import METRES, ViewpointOption, check_viewpoint
from pcreg.registration.matching.prior import Prior
from pcreg.registration.registrar import DESCRIPTORS, Registrar
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError

DESCRIPTION = """\
Register two point clouds, or the pairs of a list.

Prints T_target_source, which moves SOURCE into the frame of TARGET, and the verdict on it.
Files are .ply .pcd .xyz .txt .csv .asc .pts .npy .npz .las .laz .e57 .obj .off .stl, or .bin of KITTI or
nuScenes. Exit status: 0 registered, 1 not registered, 2 bad input or no place to write (one sentence on
stderr, nothing half-written), 70 a fault of the program. What was found is printed, and kept in result.json,
before the other files are tried.

--out DIR holds
  aligned.ply   source moved into target (orange) and target (blue) as one cloud; of clouds with more
                than five million points every n-th
  overview.png  unless --no-picture: before and after, from above and from the side, and the overlap by
                its residual, without points that lie far from the rest
  viewer.html   with --html: both clouds, to be turned round in a browser
  result.json   source, target           the files, as given
                registered               true or false
                confidence               probability that it is right, at least 0.7 when registered
                reason                   the verdict in words
                notes                    what may be wrong with the clouds, a list of sentences
                T_target_source          4 x 4, rows; p_target = R p_source + t, in metres
                scale                    1; with --scale metres per unit of the source, s of p_target =
                                         s R p_source + t, of which T_target_source then holds s R
                evidence                 the numbers that the confidence is made of, among them `inliers`
                                         of `matches`; `overlap`, the fraction of the source that lies
                                         on the target; `rmse` of that in metres; and `observability`,
                                         the directions in which the overlap could slide or turn
                covariance               6 x 6, of the motion if registered, null if not or with --scale: of
                                         small rotations (radians) about the source's axes, then of
                                         translations (metres) along them, T = T_target_source exp(.)
                alternative              another motion about as likely, if there is one, else null
                points                   {source, target}: rows used
                dropped                  {source, target}: rows left out as NaN, infinite or as notes say
                viewpoints               {source, target}: where the sensor stood, of a map a list of places,
                                         null if that is estimated
                units                    of the coordinates of source and target
                descriptor, voxel, seed  what it was computed with
                seconds                  by step: read, scale, describe, match, estimate, refine,
                                         verdict, mirror_test (of the fallback); with --scale also
                                         scale_search and scale_refinement
                version                  of pcreg

With --batch, LIST is a .csv file whose lines name source and target (paths from its own folder), or a
pattern in quotes such as 'scans/*.ply', of which each file is registered to the one before it, scan_2
before scan_10. Each pair gets the answer that it gets alone. Each file is described once per scale, all
cores work, or with --device cuda a few processes that share the GPU, and run again, the command continues.
DIR then holds table.csv, a line per pair, and pairs.jsonl with the records behind it. Exit status:
0 all registered, 1 some not, 2 and 70 as above; a disk that is full stops the run, and no pair is blamed.
"""


def parsed(arguments: list[str] | None, program: str) -> argparse.Namespace:
    """The options of a command line, as `program` has them; status 2 for one that cannot be read."""
    known = _parser(program)
    options, options.more = known.parse_known_args(arguments)
    options.program = program
    if options.more and not is_expanded(options):
        known.error(f"unrecognized arguments: {' '.join(options.more)}")
    return options


def is_expanded(options: argparse.Namespace) -> bool:
    """Whether the shell has put the names of files in the place of a pattern after --batch."""
    return bool(options.batch and options.source) and not any(word.startswith("-") for word in options.more)


def _parser(program: str) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(program, description=DESCRIPTION, formatter_class=formatter)
    parser.add_argument("source", type=Path, nargs="?", metavar="SOURCE")
    parser.add_argument("target", type=Path, nargs="?", metavar="TARGET")
    parser.add_argument("--batch", metavar="LIST", help="many pairs: a .csv file or a pattern in quotes")
    add_cluster(parser)
    add_options(parser)
    parser.add_argument(
        "--gravity",
        action="append",
        type=direction,
        metavar="UP",
        help="which way is up in the clouds, z or X,Y,Z, once for both or twice, as --viewpoint: only "
        "motions that keep it, to 5 degrees, are searched",
    )
    parser.add_argument(
        "--near",
        type=Path,
        metavar="MOTION",
        help="a file with T_target_source as for `pcreg verify`: only motions near it are searched",
    )
    parser.add_argument(
        "--within",
        nargs=2,
        type=float,
        metavar=("METRES", "DEGREES"),
        help="of --near: how far off the motion may put the middle of the source, and turn it",
    )
    parser.add_argument(
        "--scale",
        action="store_true",
        help="the source has no metric scale, as structure from motion has none: find it too, as "
        "T_target_source = [s R, t]; takes some ten times as long",
    )
    return parser


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The option of commands that share their work."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="of a Dask scheduler, such as tcp://10.0.0.1:8786, whose workers do the work",
    )


def add_scan_viewpoint(parser: argparse.ArgumentParser) -> None:
    """The option of commands on any number of scans."""
    parser.add_argument(
        "--viewpoint",
        type=viewpoint,
        default="auto",
        metavar="V",
        help="where the sensor stood in the frame of each scan, as for `pcreg register` (default: auto)",
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options on two clouds: how to read them, what to compute, what to print and write."""
    parser.add_argument(
        "--voxel",
        type=float,
        help="metres; the scale of everything (default: chosen from how the points lie, and others tried if "
        "it does not register)",
    )
    parser.add_argument(
        "--units",
        nargs=2,
        choices=list(METRES),
        default=("m", "m"),
        metavar=("SOURCE", "TARGET"),
        help=f"of the coordinates, each one of {' '.join(METRES)} (default: m m)",
    )
    parser.add_argument(
        "--viewpoint",
        action="append",
        type=viewpoint,
        metavar="V",
        help="where the sensor stood: X,Y,Z in metres, sensor (at the origin, as in raw scans), or "
        "auto (what a .pcd, .e57 or .npz states, else estimated from the cloud alone; the default). Once for "
        "both clouds, twice for source and target; --viewpoint=-1,2,3 where a number is negative",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("registration"), help="default: %(default)s"
    )
    parser.add_argument("--html", action="store_true", help="write viewer.html too")
    parser.add_argument("--no-picture", action="store_true", help="write no overview.png")
    parser.add_argument("--show", action="store_true", help="open a window with the result")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the result alone on stdout, the content of result.json in one line or, of a batch, that "
        "of pairs.jsonl; everything else goes to stderr",
    )
    add_shared_options(parser)
    return parser


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """The options that every verb on clouds has, with the same meaning."""
    parser.add_argument(
        "--columns",
        type=int,
        metavar="N",
        help="float32 numbers per point of .bin files (default: by content: 4 KITTI, 5 nuScenes)",
    )
    parser.add_argument(
        "--descriptor",
        choices=DESCRIPTORS,
        default=DESCRIPTORS[0],
        help="learned, or histograms that need no training (default: %(default)s)",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="W",
        help="a .safetensors file of `pcreg train` (default: of the shipped ones what suits the clouds)",
    )
    parser.add_argument(
        "--device", default="cpu", help="that computes: cpu, cuda or auto (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same result (default: %(default)s)")
    verbosity = parser.add_mutually_exclusive_group()
    verbosity.add_argument(
        "--quiet", action="store_true", help="print nothing but errors; the exit status is the answer"
    )
    verbosity.add_argument("--verbose", action="store_true", help="log each step on stderr")
    parser.add_argument("--traceback", action="store_true", help="print where a fault of the program arose")
    parser.add_argument("--version", action="version", version=f"pcreg {VERSION}")


def viewpoint(text: str) -> ViewpointOption:
    """A value of --viewpoint."""
    try:
        return check_viewpoint(text.split(",") if "," in text else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def direction(text: str) -> tuple[float, float, float]:
    """A value of --gravity."""
    axes = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
    if text in axes:
        return axes[text]
    try:
        x, y, z = (float(word) for word in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no direction; use z, or X,Y,Z that point up") from error
    return x, y, z


def prior_of(options: argparse.Namespace) -> Prior:
    """What --gravity, --near and --within say; InputError for what cannot be used."""
    up = options.gravity
    near = read_motion(options.near) if options.near else None
    within = tuple(options.within) if options.within else None
    return Prior(gravity=up and (up[0] if len(up) == 1 else tuple(up)), near=near, within=within)


def viewpoint_of(options: argparse.Namespace) -> ViewpointOption | tuple[ViewpointOption, ...]:
    """The value of --viewpoint: for both clouds, or for source and target."""
    given = options.viewpoint or ["auto"]
    return given[0] if len(given) == 1 else tuple(given)


def registrar_of(options: argparse.Namespace) -> Registrar:
    """The registrar with these options; InputError for weights that cannot be read."""
    return Registrar(
        descriptor=options.descriptor, weights=options.weights, voxel=options.voxel, device=options.device
    )
