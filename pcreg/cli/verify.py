"""The verb `verify`: two clouds and a transform between them that comes from elsewhere."""

import argparse
from pathlib import Path
from typing import TextIO

from pcreg.cli import pair
from pcreg.cli.options import parser_of, refuse_to_overwrite, run
from pcreg.io.motion import read_motion

DESCRIPTION = """\
Judge a transform between two point clouds that comes from elsewhere, such as ICP or a SLAM loop closure.

TRANSFORM is a file with T_target_source, which moves SOURCE into the frame of TARGET, in metres: a text or a
.npy file of the matrix or its upper 3 rows; a line `time tx ty tz qx qy qz qw` (TUM); what `pcreg register`
prints, or its result.json. Use the identity for clouds that are already aligned.

The transform is refined first, and a note states the correction. If the correction exceeds 1.5 voxels on
average over the source, the given transform is rejected; the refined one is printed if it fits, and a note
says so if the inverse of the given one fits. If a quarter or half turn of the source fits as well, both are
rejected. No other transform is searched: in a scene that repeats itself, such as a row of equal rooms, a
wrong transform may be accepted.

Exit status, clouds, and the files in --out DIR are those of `pcreg register --help`.
"""


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    parser = parser_of("verify", DESCRIPTION)
    for name in ("source", "target", "transform"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    pair.add_options(parser, "verification")
    parser.set_defaults(scale=False)
    return run(parser.parse_args(arguments), _run)


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    refuse_to_overwrite([options.transform], options.out / "result.json")
    return pair.run(options, stdout, T_target_source=read_motion(options.transform))
