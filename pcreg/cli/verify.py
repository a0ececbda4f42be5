"""The verb `verify`: two clouds and a motion between them that comes from elsewhere."""

import argparse
from pathlib import Path
from typing import TextIO

from pcreg.cli import pair
from pcreg.cli.options import parser_of, run
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
    parser = parser_of(program, DESCRIPTION)
    for name in ("source", "target", "motion"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    pair.add_options(parser, "verification")
    parser.set_defaults(batch=None, scale=False)
    return run(parser.parse_args(arguments), _run)


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    pair.check(options)
    return pair.run(options, stdout, T_target_source=read_motion(options.motion))
