"""The verb `verify`: two clouds and a motion between them that comes from elsewhere."""

import argparse
from pathlib import Path

from pcreg.cli import exit_status
from pcreg.cli.output import output
from pcreg.cli.register.checks import check
from pcreg.cli.register.pair import run
from pcreg.cli.register.parser import add_options
from pcreg.io.motion import read_motion

DESCRIPTION = """\
Judge a motion between two point clouds that comes from elsewhere: ICP, a SLAM loop closure, another matcher.

MOTION is a text file with T_target_source, which moves SOURCE into the frame of TARGET, in metres: 4 lines of
4 numbers or the upper 3 of them, as `pcreg register` prints it; or a result.json of `pcreg register`. The
identity says that the clouds are aligned.

The motion is refined, and the verdict is on the refined one, which is printed and written with a note that
states the correction. If that is more than 1.5 voxels on average over the source, the given motion is
refused, and if the clouds fit there, the refined one is the `alternative`. No other motion is searched for,
so that a scene that repeats itself is not noticed.

Exit status: 0 registered: the motion is right; 1 not registered; 2 bad input or no place to write; 70 a fault
of the program. Files, what --out DIR holds and all else is as `pcreg register --help` has it.
"""


def main(arguments: list[str] | None = None, program: str = "pcreg verify") -> int:
    """Run the command line and return its exit status."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(program, description=DESCRIPTION, formatter_class=formatter)
    for name in ("source", "target", "motion"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    add_options(parser)
    parser.set_defaults(out=Path("verification"), batch=None, scale=False)  # which the checks ask for
    options = parser.parse_args(arguments)
    return exit_status.status(lambda: _run(options), with_traceback=options.traceback)


def _run(options: argparse.Namespace) -> int:
    check(options)
    with output(quiet=options.quiet, verbose=options.verbose, json=options.json) as stdout:
        return 0 if run(options, stdout, read_motion(options.motion)) else 1
