"""Two files: read, register or verify a motion, print, write."""

import argparse
import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TextIO

import numpy as np

from pcreg.cli.register import report
from pcreg.cli.register.parser import prior_of, registrar_of, viewpoint_of
from pcreg.io.cloud import Cloud
from pcreg.registration.clouds.inputs import ViewpointOption, both_viewpoints
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.result import Registration
from pcreg.registration.strategy.task import Task
from pcreg.runtime import parallel
from pcreg.runtime.progress import Steps
from pcreg.runtime.timer import Clock
from pcreg.viz import files as output
from pcreg.viz.window import show


def run(options: argparse.Namespace, stdout: TextIO, T_target_source: np.ndarray | None = None) -> bool:
    """Register SOURCE to TARGET; whether they are registered. `stdout` gets the result with --json.

    A motion (4, 4) that is given is verified instead.
    """
    with parallel.one_for_blas(), no_garbage_search():
        clouds, found, task = _answered(options, T_target_source)
        if options.json:
            print(json.dumps(output.result(clouds, found, task)), file=stdout, flush=True)
        report.print_verdict(found)
        with Steps("writing"):
            paths, seconds = output.write(
                options.out, clouds, found, task, picture=not options.no_picture, html=options.html
            )
        report.print_files(clouds, paths, found.seconds | seconds)
    if options.show:
        show(*(cloud.points for cloud in clouds), found.T_target_source)
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
    options: argparse.Namespace, T_target_source: np.ndarray | None
) -> tuple[tuple[Cloud, Cloud], Registration, Task]:
    """The clouds, what was found, and what it was found with."""
    files = str(options.source), str(options.target)
    registrar, clock = registrar_of(options), Clock()
    sides = zip(files, options.units, both_viewpoints(viewpoint_of(options)), strict=True)

    def prepare(side: tuple[str, str, ViewpointOption]) -> PreparedCloud:
        file, unit, viewpoint = side
        return registrar.prepare(file, units=unit, columns=options.columns, viewpoint=viewpoint)

    with Steps("reading"):
        prepared = parallel.each(prepare, sides)
    clouds = prepared[0].cloud, prepared[1].cloud
    report.print_clouds(files, clouds)
    clock.lap("read")
    if not options.scale:
        descriptor = next(registrar.scales(*prepared)).descriptor
        clock.lap("scale")
        report.print_scale(descriptor, is_chosen=options.voxel is None)
    with Steps("registering" if T_target_source is None else "verifying"):
        if T_target_source is None:
            found = registrar.register(
                *prepared, seed=options.seed, prior=prior_of(options), scale=options.scale
            )
        else:
            found = registrar.verify(*prepared, T_target_source, seed=options.seed)
    found = replace(found, seconds=clock.seconds | found.seconds)
    return clouds, found, Task(files, tuple(options.units), options.descriptor, options.seed)
