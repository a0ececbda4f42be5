"""Register two point clouds: python register.py SOURCE TARGET [--out DIR]

Prints T_target_source, which moves SOURCE into the frame of TARGET, and whether to believe it.
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
                notes                    what looked wrong with the clouds, a list of sentences
                T_target_source          4 x 4, rows; p_target = R p_source + t, in metres
                evidence                 the numbers that the confidence is made of, among them `inliers`
                                         of `matches`; `overlap`, the fraction of the source that lies
                                         on the target; `rmse` of that in metres; and `observability`,
                                         the directions in which the overlap could slide or turn
                alternative              another motion about as likely, if there is one, else null
                points                   {source, target}: rows used
                dropped                  {source, target}: rows left out as NaN, infinite or as notes say
                viewpoints               {source, target}: where the sensor stood, null if that is estimated
                units                    of the coordinates of source and target
                descriptor, voxel, seed  what it was computed with
                seconds                  by step: read, scale, describe, match, estimate, refine,
                                         judge, doubt (of the fallback)
                version                  of pcreg

Many pairs: python register.py --batch LIST [--out DIR]

LIST is a .csv file whose lines name source and target (paths from its own folder), or a pattern in
quotes such as 'scans/*.ply', of which each file is registered to the one before it, scan_2 before
scan_10. Each pair gets the answer that it gets alone. Each file is described once per scale, all cores work
(--device cuda describes on a GPU), and run again, the command goes on where it ended.
DIR then holds table.csv, a line per pair, and pairs.jsonl with the records behind it. Exit status: 0 all
registered, 1 some not, 2 and 70 as above; a disk that is full stops the run, and no pair is blamed.
"""

import argparse
import os
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from pcreg.cli import exit_status
from pcreg.geometry.se3 import transform
from pcreg.geometry.viewpoint import ViewpointOption, check_viewpoint, of_both
from pcreg.io.cloud import WIDEST, Cloud
from pcreg.registration import task as registration_task
from pcreg.registration.inputs import METRES
from pcreg.registration.registrar import DESCRIPTORS, Registrar
from pcreg.registration.result import Registration
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import check_folder
from pcreg.runtime.lock import locked
from pcreg.runtime.progress import Steps
from pcreg.runtime.timer import Clock
from pcreg.viz import files as output
from pcreg.viz.overview import SOURCE, TARGET


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = parsed(argv)
    return exit_status.status(lambda: _main(options), verbose=options.traceback)


def _main(options: argparse.Namespace) -> int:
    _check(options)
    if options.batch:
        return 0 if batch(options) else 1
    with parallel.one_for_blas():
        return 0 if run(options).registered else 1


def parsed(argv: list[str] | None) -> argparse.Namespace:
    """The options of a command line; status 2 for one that cannot be read."""
    known = parser()
    options, options.more = known.parse_known_args(argv)
    if options.more and not _expanded(options):
        known.error(f"unrecognized arguments: {' '.join(options.more)}")
    return options


def _expanded(options: argparse.Namespace) -> bool:
    """Whether the shell has put the names of files in the place of a pattern after --batch."""
    return bool(options.batch and options.source) and not any(word.startswith("-") for word in options.more)


def parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("register.py", description=__doc__, formatter_class=formatter)
    parser.add_argument("source", type=Path, nargs="?", metavar="SOURCE")
    parser.add_argument("target", type=Path, nargs="?", metavar="TARGET")
    parser.add_argument("--batch", metavar="LIST", help="many pairs: a .csv file or a pattern in quotes")
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
        type=_viewpoint,
        metavar="V",
        help="where the sensor stood: X,Y,Z in metres, sensor (at the origin), unknown (estimated), or auto "
        "(what a .pcd or .e57 states, else at the origin if the cloud looks like a view from there, else "
        "unknown; the default). Once for both "
        "clouds, twice for source and target; --viewpoint=-1,2,3 where a number is negative",
    )
    parser.add_argument(
        "--columns",
        type=int,
        metavar="N",
        help="float32 numbers per point of .bin files (default: told by content: 4 KITTI, 5 nuScenes)",
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
        help="a .safetensors file of train.py (default: of the shipped ones what suits the clouds)",
    )
    parser.add_argument(
        "--device", default="cpu", help="of the learned descriptor: cpu, cuda or auto (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("registration"), help="default: %(default)s"
    )
    parser.add_argument("--html", action="store_true", help="write viewer.html too")
    parser.add_argument("--no-picture", action="store_true", help="write no overview.png")
    parser.add_argument("--show", action="store_true", help="open a window with the result")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same result (default: %(default)s)")
    parser.add_argument("--traceback", action="store_true", help="print where a fault of the program arose")
    parser.add_argument("--version", action="version", version=f"pcreg {version('pcreg')}")
    return parser


def _viewpoint(text: str) -> ViewpointOption:
    """A value of --viewpoint."""
    try:
        return check_viewpoint(text.split(",") if "," in text else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _check(options: argparse.Namespace) -> None:
    """Refuse what cannot be done before anything is read."""
    if len(options.viewpoint or ()) > 2 - bool(options.batch):
        raise InputError(
            "--viewpoint is given too often; give it once for both clouds or once for each, in a batch once"
        )
    if os.path.isfile(options.out):  # which, unlike that of Path, says no where one may not look
        raise InputError(f"{options.out}: --out is a file; name a folder")
    if options.seed < 0:
        raise InputError(f"--seed {options.seed} is negative; use 0 or more")
    if options.voxel is not None and not 0 < options.voxel < np.inf:
        raise InputError(f"--voxel {options.voxel:g} is no size; use a positive number of metres")
    if options.columns is not None and not 3 <= options.columns <= WIDEST:
        raise InputError(f"--columns {options.columns}: rows of a .bin have 3 to {WIDEST} numbers")
    if _expanded(options) and not options.batch.lower().endswith(".csv"):
        pattern = Path(options.batch).with_name(f"*{Path(options.batch).suffix}")
        raise InputError(
            f"--batch was given several files, for the shell has expanded the pattern; quote it: '{pattern}'"
        )
    if options.batch and (options.source or options.html or options.show or options.no_picture):
        raise InputError(
            "--batch takes one list and writes one table; leave out SOURCE, TARGET, --html, --no-picture and "
            "--show"
        )
    if options.batch and len(set(options.units)) > 1:
        raise InputError(
            f"--units {' '.join(options.units)}: the files of a batch have one unit; name it twice"
        )
    if not options.batch and not options.target:
        raise InputError("two files are needed: register.py SOURCE TARGET; --help shows all")
    if options.show and sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        raise InputError("--show needs a display and there is none; --html writes a page instead")
    if options.weights and options.descriptor != DESCRIPTORS[0]:
        raise InputError(f"{options.weights}: {options.descriptor} takes no weights; leave one out")
    check_folder(options.out)


def _one_or_two(viewpoints: list[ViewpointOption] | None) -> ViewpointOption | tuple[ViewpointOption, ...]:
    """What --viewpoint says: of both clouds, or of source and target."""
    given = viewpoints or ["auto"]
    return given[0] if len(given) == 1 else tuple(given)


def _registrar(options: argparse.Namespace) -> Registrar:
    return Registrar(
        descriptor=options.descriptor, weights=options.weights, voxel=options.voxel, device=options.device
    )


def run(options: argparse.Namespace) -> Registration:
    """Read, register, write, report."""
    files = str(options.source), str(options.target)
    registrar, clock = _registrar(options), Clock()
    with Steps("reading"):
        prepared = [
            registrar.prepare(file, units=unit, columns=options.columns, viewpoint=viewpoint)
            for file, unit, viewpoint in zip(
                files, options.units, of_both(_one_or_two(options.viewpoint)), strict=True
            )
        ]
    clouds = prepared[0].cloud, prepared[1].cloud
    for file, cloud in zip(files, clouds, strict=True):
        print(f"{file}: {len(cloud.points)} points, {cloud.dropped} rows dropped (NaN, infinite or outliers)")
    clock.lap("read")
    first, *further = registrar.scales(*prepared)
    clock.lap("scale")
    print(f"descriptor: {first.descriptor.label}")
    others = ", ".join(f"{each.voxel:g}" for each in further)
    print(f"voxel {first.voxel:g} m" + (f", then {others} (--voxel changes it)" if others else ""))
    with Steps("registering"):
        found = registrar.register(*prepared, seed=options.seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    task = registration_task.Task(files, tuple(options.units), options.descriptor, options.seed)
    report(found)
    picture = not options.no_picture
    with Steps("writing"):
        paths, seconds = output.write(options.out, clouds, found, task, picture=picture, html=options.html)
    report_files(clouds, paths, found.seconds | seconds)
    if options.show:
        show(clouds, found)
    return found


def report(registration: Registration) -> None:
    """Print the motion and the verdict, at once: what comes after it may fail."""
    print(f"\nT_target_source =\n{pasteable(registration.T_target_source)}\n")
    verdict = "registered" if registration.registered else "NOT registered"
    print(f"{verdict}, confidence {registration.confidence:.2f}: {registration.reason}")
    if registration.alternative is not None:
        print(f"about as likely, T_target_source =\n{pasteable(registration.alternative)}")
    for note in registration.notes:
        print(f"note: {note}")
    sys.stdout.flush()


def report_files(clouds: tuple[Cloud, Cloud], paths: list[Path], seconds: dict[str, float]) -> None:
    steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
    print(f"seconds: {steps}; total {sum(seconds.values()):.2f}")
    print(f"written: {', '.join(map(str, paths))}")
    for side, cloud in zip(("source", "target"), clouds, strict=True):
        if (step := output.every(cloud.points)) > 1:
            print(f"aligned.ply holds one of {step} points of the {side}, which has {len(cloud.points)}")


def pasteable(T: np.ndarray) -> str:
    """The rows of a motion (4, 4), to be pasted into Python."""
    rows = (", ".join(f"{value: .9f}" for value in row) for row in T)
    return "[" + ",\n ".join(f"[{row}]" for row in rows) + "]"


def show(clouds: tuple[Cloud, Cloud], registration: Registration) -> None:
    """Open a window with both clouds; returns when it is closed."""
    import open3d

    drawn = []
    centre = clouds[1].points.mean(0)  # the window works in float32
    moved = transform(registration.T_target_source, clouds[0].points)
    for points, color in ((moved, SOURCE), (clouds[1].points, TARGET)):
        cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points - centre))
        drawn.append(cloud.paint_uniform_color(color))
    open3d.visualization.draw_geometries(drawn, "pcreg")


def batch(options: argparse.Namespace) -> bool:
    """Register the pairs of a list; whether all are registered."""
    from pcreg.registration.batch import pairs_of, run

    pairs, registrar = pairs_of(options.batch), _registrar(options)
    with locked(options.out, "name another folder with --out"):
        records = run(
            registrar,
            pairs,
            options.out,
            unit=options.units[0],
            viewpoint=_one_or_two(options.viewpoint),
            columns=options.columns,
            seed=options.seed,
        )
    done = sum(record["registered"] for record in records)
    print(f"{done} of {len(records)} pairs registered\nwritten: {options.out / 'table.csv'}")
    return done == len(records)


if __name__ == "__main__":
    sys.exit(main())
