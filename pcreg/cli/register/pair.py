"""Two files: read, register, say, write."""

import argparse
import json
from dataclasses import replace
from typing import TextIO

from pcreg.cli.register import report
from pcreg.cli.register.parser import viewpoint_of
from pcreg.geometry.viewpoint import of_both
from pcreg.io.cloud import Cloud
from pcreg.registration import api
from pcreg.registration.inputs import as_cloud
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.registration.task import Task
from pcreg.runtime import parallel
from pcreg.runtime.progress import Steps
from pcreg.runtime.timer import Clock
from pcreg.viz import files as output
from pcreg.viz.window import show


def run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Register SOURCE to TARGET; whether they are registered. `stdout` gets the result with --json."""
    with parallel.one_for_blas():
        clouds, found, task = _registered(options)
        if options.json:
            print(json.dumps(output.result(clouds, found, task)), file=stdout, flush=True)
        report.say_verdict(found)
        with Steps("writing"):
            paths, seconds = output.write(
                options.out, clouds, found, task, picture=not options.no_picture, html=options.html
            )
        report.say_files(clouds, paths, found.seconds | seconds)
    if options.show:
        show(*(cloud.points for cloud in clouds), found.T_target_source)
    return found.registered


def _registered(options: argparse.Namespace) -> tuple[tuple[Cloud, Cloud], Registration, Task]:
    """The clouds, what was found, and what it was found with."""
    learned = api.load(options.descriptor, options.weights, options.device)
    clock, files = Clock(), (str(options.source), str(options.target))
    with Steps("reading"):
        clouds = tuple(
            as_cloud(file, file, unit, options.columns)
            for file, unit in zip(files, options.units, strict=True)
        )
    report.say_clouds(files, clouds)
    clock.lap("read")
    points = [cloud.points for cloud in clouds]
    choices = api.descriptors(*points, files, options.descriptor, learned, options.voxel, options.device)
    clock.lap("scale")
    report.say_scales(choices)
    with Steps("registering"):
        found = api.register_points(
            *points,
            [Registrar(each) for each in choices],
            seed=options.seed,
            names=files,
            viewpoints=of_both(viewpoint_of(options)),
        )
    notes = (*clouds[0].notes, *clouds[1].notes, *found.notes)
    found = replace(found, seconds=clock.seconds | found.seconds, notes=notes)
    return clouds, found, Task(files, tuple(options.units), choices[0].name, options.seed)
