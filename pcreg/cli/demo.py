"""Register two scans of a simulated room, and compare the answer with the truth.

Writes source.ply and target.ply into --out DIR, and beside them what `pcreg register` writes.
"""

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import TextIO

import numpy as np

from pcreg.cli import options as shared
from pcreg.cli import register
from pcreg.geometry.overlap import measured_overlap
from pcreg.geometry.se3 import rotation_error, translation_error
from pcreg.io.cloud import write_ply

SCANS = Path(str(files("pcreg.cli"))) / "demo.npz"  # python -m tests.rooms makes it
UNIT = 1e-4  # of the depths, metres


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit status of the registration."""
    parser = shared.parser_of("demo", __doc__)
    parser.add_argument("--out", default="demo", **shared.OUT)
    shared.add_flags(parser)
    parser.set_defaults(json=False)
    return shared.run(parser.parse_args(arguments), _run)


def _run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Register the two scans; True if they are registered."""
    out = options.out
    with np.load(SCANS) as file:
        scans, T_true = [points(depth, file["focal"]) for depth in file["depth"]], file["T_target_source"]
    shared.check_out(out)
    paths = [out / "source.ply", out / "target.ply"]
    for path, scan in zip(paths, scans, strict=True):
        write_ply(path, scan)
    print(f"Two scans of a simulated room, {measured_overlap(*scans, T_true, 0.05):.0%} overlap.")
    print(f"$ pcreg register {paths[0]} {paths[1]} --out {out}")
    registered = register.run(register.parsed([*map(str, paths), "--out", str(out)]), stdout)
    T = np.array(json.loads((out / "result.json").read_text())["T_target_source"])
    degrees, centimetres = rotation_error(T, T_true), 100 * translation_error(T, T_true)
    print(f"\ntrue error: RRE {degrees:.3f} degrees, RTE {centimetres:.2f} cm")
    return registered


def points(depth: np.ndarray, focal: float) -> np.ndarray:
    """Points (N, 3) of a depth image (height, width), 0 for none, in the camera frame: x right, y down."""
    row, column = np.nonzero(depth)
    z = UNIT * depth[row, column]
    middle = (np.array(depth.shape) - 1) / 2
    return np.column_stack([(column - middle[1]) * z / focal, (row - middle[0]) * z / focal, z])
