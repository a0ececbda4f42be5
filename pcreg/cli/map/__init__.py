"""The verb `map`: many scans, in any order, into one map."""

import argparse
import json
from pathlib import Path
from typing import TextIO

from pcreg.cli import exit_status
from pcreg.cli.map.parser import parsed, paths_of
from pcreg.cli.output import output
from pcreg.cli.register.parser import registrar_of
from pcreg.registration.clouds.inputs import check_seed, check_settings
from pcreg.registration.matching.prior import Prior
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import check_folder


def main(arguments: list[str] | None = None, program: str = "pcreg map") -> int:
    """Run the command line and return its exit status."""
    options = parsed(arguments, program)
    return exit_status.status(lambda: _run(options), with_traceback=options.traceback)


def _run(options: argparse.Namespace) -> int:
    check_seed(options.seed)
    check_settings(options.voxel, options.weights, options.device)
    if options.out.is_file():
        raise InputError(f"{options.out}: --out is a file; name a folder")
    Prior(gravity=options.gravity)  # refused before anything is read
    paths = paths_of(options.scans)
    check_folder(options.out)
    with output(quiet=options.quiet, verbose=options.verbose, json=options.json) as stdout:
        return 0 if _mapped(options, paths, stdout) else 1


def _mapped(options: argparse.Namespace, paths: list[str], stdout: TextIO) -> bool:
    """Map the files and write the result; whether all are in one map."""
    from pcreg.cli.map.report import print_map
    from pcreg.mapping import mapping
    from pcreg.runtime.files import locked
    from pcreg.runtime.progress import Steps
    from pcreg.viz.map_files import write_map

    with locked(options.out, "name another folder with --out"):
        registrar = registrar_of(options)
        found = mapping.run(
            registrar,
            paths,
            Path(options.out),
            unit=options.units,
            viewpoint=options.viewpoint,
            columns=options.columns,
            prior=Prior(gravity=options.gravity),
            sequence=options.sequence,
            workers=options.cluster,
            seed=options.seed,
        )
        if options.json:
            print(json.dumps(found.to_dict()), file=stdout, flush=True)
        print_map(found)
        with Steps("writing"):
            written = write_map(
                options.out,
                found,
                lambda row: registrar.prepare(
                    paths[row], units=options.units, columns=options.columns, viewpoint=options.viewpoint
                ),
                picture=not options.no_picture,
            )
    print(f"written: {', '.join(map(str, written))}")
    return found.is_whole
