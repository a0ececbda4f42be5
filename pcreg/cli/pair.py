"""Registration or verification of two clouds: options, computation, output and files."""

import argparse
import json
import sys
from dataclasses import replace
from typing import TextIO

import numpy as np

from pcreg.cli import options as shared
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.result import Registration, record_of
from pcreg.runtime import parallel
from pcreg.runtime.progress import Clock, Steps
from pcreg.viz import files


def add_options(parser: argparse.ArgumentParser, out: str) -> None:
    """Add the options on two clouds, whose results go to the folder `out` by default."""
    add = parser.add_argument
    add(
        "--viewpoint",
        action="append",
        type=shared.viewpoint,
        metavar="V",
        help="position of the sensor: X,Y,Z in metres; sensor for the origin, as in raw scans; or auto: as "
        "stated in a .pcd, .e57 or .npz, else estimated (default: auto). Give it once for both clouds, or "
        "twice, for source and target. A negative number needs an equals sign: --viewpoint=-1,2,3",
    )
    add("--html", action="store_true", help="write viewer.html too")
    add("--no-picture", action="store_true", help="write no overview.png")
    shared.add_options(
        parser,
        out=out,
        voxel="chosen from the clouds",
        units=("SOURCE", "TARGET"),
        json="the content of result.json, in one line,",
    )


def run(
    options: argparse.Namespace,
    stdout: TextIO,
    *,
    prior: Prior = ANY,
    T_target_source: np.ndarray | None = None,
) -> bool:
    """Register SOURCE to TARGET, or verify a transform (4, 4); True if they are registered."""
    names, words = (str(options.source), str(options.target)), []
    shared.refuse_to_overwrite(names, options.out / "aligned.ply")
    registrar, clock = shared.registrar_of(options), Clock()
    units, viewpoint = shared.for_both(options, "units", "m"), shared.for_both(options, "viewpoint", "auto")
    with parallel.one_for_blas():
        with Steps("reading"):
            prepared = registrar.prepare_both(
                *names, units=units, columns=options.columns, viewpoint=viewpoint
            )
        clock.lap("read")
        if not options.scale:
            words.append(next(registrar.scales(*prepared)).descriptor.label)
            clock.lap("scale")
        with Steps("registering" if T_target_source is None else "verifying"):
            if T_target_source is None:
                found = registrar.register(*prepared, seed=options.seed, prior=prior, scale=options.scale)
            else:
                found = registrar.verify(*prepared, T_target_source, seed=options.seed)
        found = replace(found, seconds=clock.seconds | found.seconds)
        clouds = source, target = prepared[0].cloud, prepared[1].cloud
        record = record_of(found, names, units, options.descriptor, options.seed)
        record["points"] = {"source": len(source.points), "target": len(target.points)}
        record["dropped"] = {"source": source.dropped, "target": target.dropped}
        if options.json:
            print(json.dumps(record), file=stdout, flush=True)
        _print_verdict(found, "about as likely:" if T_target_source is None else "better:")
        for name, cloud in zip(names, clouds, strict=True):
            dropped = f", {cloud.dropped} dropped (NaN, infinite or outliers)" if cloud.dropped else ""
            print(f"{name}: {len(cloud.points):,} points{dropped}")
        print(", ".join([*words, f"voxel {found.voxel:g} m"]))
        with Steps("writing"):
            paths, seconds = files.write(
                options.out, clouds, found, record, picture=not options.no_picture, html=options.html
            )
        seconds = found.seconds | seconds
        steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
        print(f"seconds: {steps}; total {sum(seconds.values()):.2f}")
        print(f"written: {', '.join(map(str, paths))}")
    return found.registered


def _print_verdict(found: Registration, other: str) -> None:
    """Print the verdict, the transform, notes and, after the words `other`, the alternative."""
    print(f"{found.verdict}: {found.reason}\n")
    rejected = "" if found.registered else "rejected "
    print(f"{rejected}T_target_source =\n{pasteable(found.T_target_source)}\n")
    if found.scale != 1.0:
        print(f"scale {found.scale:.6g}\n")
    if found.alternative is not None:
        print(f"{other} T_target_source =\n{pasteable(found.alternative)}\n")
    for note in found.notes:
        print(f"note: {note}")
    sys.stdout.flush()  # shows the result before files are written


def pasteable(T: np.ndarray) -> str:
    """Format a transform (4, 4) so that its rows can be pasted into Python."""
    return np.array2string(T, separator=", ", formatter={"float_kind": "{: .9f}".format}, max_line_width=200)
