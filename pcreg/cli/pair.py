"""Two clouds: their options, what is computed, printed and written."""

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO

import numpy as np

from pcreg.cli import options as shared
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.inputs import ViewpointOption, both_viewpoints
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.matching.prior import Prior
from pcreg.registration.result import Registration, Task
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import check_folder
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
        help="where the sensor stood: X,Y,Z in metres, sensor (at the origin, as in raw scans), or "
        "auto (what a .pcd, .e57 or .npz states, else estimated from the cloud alone; the default). Once for "
        "both clouds, twice for source and target; --viewpoint=-1,2,3 where a number is negative",
    )
    add("--html", action="store_true", help="write viewer.html too")
    add("--no-picture", action="store_true", help="write no overview.png")
    shared.add_options(
        parser,
        out=out,
        voxel="chosen from how the points lie, and others tried if it does not register",
        units=("SOURCE", "TARGET"),
        json="the content of result.json in one line, or that of pairs.jsonl of a batch,",
    )


def check(options: argparse.Namespace) -> None:
    """Raise InputError for options on two clouds that cannot be used, or not together."""
    if len(options.viewpoint or ()) > 2 - bool(options.batch):
        raise InputError(
            "--viewpoint is given too often; give it once for both clouds or once for each, in a batch once"
        )
    shared.check(options)
    check_folder(options.out)


def viewpoint_of(options: argparse.Namespace) -> ViewpointOption | tuple[ViewpointOption, ...]:
    """The value of --viewpoint: for both clouds, or for source and target."""
    given = options.viewpoint or ["auto"]
    return given[0] if len(given) == 1 else tuple(given)


def run(
    options: argparse.Namespace,
    stdout: TextIO,
    *,
    prior: Prior | None = None,
    T_target_source: np.ndarray | None = None,
) -> bool:
    """Register SOURCE to TARGET, or verify a motion (4, 4); whether they are registered."""
    with parallel.one_for_blas(), no_garbage_search():
        clouds, found, task = _answered(options, prior, T_target_source)
        if options.json:
            print(json.dumps(files.result(clouds, found, task)), file=stdout, flush=True)
        _print_verdict(found)
        with Steps("writing"):
            paths, seconds = files.write(
                options.out, clouds, found, task, picture=not options.no_picture, html=options.html
            )
        seconds = found.seconds | seconds
        steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
        print(f"seconds: {steps}; total {sum(seconds.values()):.2f}")
        print(f"written: {', '.join(map(str, paths))}")
        for side, cloud in zip(("source", "target"), clouds, strict=True):
            if (step := files.stride(cloud.points)) > 1:
                print(f"aligned.ply holds one of {step} points of the {side}, which has {len(cloud.points)}")
    return found.registered


@contextmanager
def no_garbage_search() -> Iterator[None]:
    """Within, Python searches no garbage; what exists at the end is never searched.

    Searching the quarter of a million objects of PyTorch takes half a second of a process that ends soon.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _answered(
    options: argparse.Namespace, prior: Prior | None, T_target_source: np.ndarray | None
) -> tuple[tuple[Cloud, Cloud], Registration, Task]:
    """The clouds, the registration, and its settings."""
    names = str(options.source), str(options.target)
    registrar, clock = shared.registrar_of(options), Clock()
    sides = zip(names, options.units, both_viewpoints(viewpoint_of(options)), strict=True)

    def prepare(side: tuple[str, str, ViewpointOption]) -> PreparedCloud:
        file, unit, viewpoint = side
        return registrar.prepare(file, units=unit, columns=options.columns, viewpoint=viewpoint)

    with Steps("reading"):
        prepared = parallel.each(prepare, sides)
    clouds = prepared[0].cloud, prepared[1].cloud
    for name, cloud in zip(names, clouds, strict=True):
        print(f"{name}: {len(cloud.points)} points, {cloud.dropped} rows dropped (NaN, infinite or outliers)")
    clock.lap("read")
    if not options.scale:
        descriptor = next(registrar.scales(*prepared)).descriptor
        clock.lap("scale")
        print(f"descriptor: {descriptor.label}")
        print(f"voxel {descriptor.voxel:g} m" + (" (--voxel changes it)" if options.voxel is None else ""))
    with Steps("registering" if T_target_source is None else "verifying"):
        if T_target_source is None:
            found = registrar.register(*prepared, seed=options.seed, prior=prior, scale=options.scale)
        else:
            found = registrar.verify(*prepared, T_target_source, seed=options.seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    return clouds, found, Task(names, tuple(options.units), options.descriptor, options.seed)


def _print_verdict(registration: Registration) -> None:
    """Print motion and verdict and flush, since later steps may fail."""
    print(f"\nT_target_source =\n{pasteable(registration.T_target_source)}\n")
    if registration.scale != 1.0:
        print(f"scale {registration.scale:.6g}, at voxel {registration.voxel:g} m")
    verdict = "registered" if registration.registered else "NOT registered"
    print(f"{verdict}, confidence {registration.confidence:.2f}: {registration.reason}")
    if registration.alternative is not None:
        print(f"about as likely, T_target_source =\n{pasteable(registration.alternative)}")
    for note in registration.notes:
        print(f"note: {note}")
    sys.stdout.flush()


def pasteable(T: np.ndarray) -> str:
    """The rows of a motion (4, 4), to be pasted into Python."""
    rows = (", ".join(f"{value: .9f}" for value in row) for row in T)
    return "[" + ",\n ".join(f"[{row}]" for row in rows) + "]"
