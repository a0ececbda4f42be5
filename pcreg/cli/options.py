"""Options that verbs on clouds share."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TextIO

from pcreg.cli import exit_status
from pcreg.io.formats.arrays import MAX_COLUMNS
from pcreg.registration.clouds.inputs import METRES, ViewpointOption, check_seed, check_viewpoint
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import writing


class _Parser(argparse.ArgumentParser):
    """A parser that refuses a command line in one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}; --help shows all options\n")


def parser_of(verb: str, description: str, **settings: Any) -> argparse.ArgumentParser:
    """A parser for a verb of `pcreg` that prints the description as it is."""
    formatter = argparse.RawDescriptionHelpFormatter
    return _Parser(f"pcreg {verb}", description=description, formatter_class=formatter, **settings)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every verb that may take long."""
    verbosity = parser.add_mutually_exclusive_group()
    quiet = "print nothing but errors; the exit status is the answer"
    verbosity.add_argument("--quiet", action="store_true", help=quiet)
    verbosity.add_argument("--verbose", action="store_true", help="log each step on stderr")
    parser.add_argument("--traceback", action="store_true", help="print the traceback of a fault of pcreg")
    parser.add_argument("--version", action="version", version=f"pcreg {VERSION}")


def add_options(
    parser: argparse.ArgumentParser, *, out: str, voxel: str, units: tuple[str, ...], json: str
) -> None:
    """Add the options of every verb on clouds.

    `out` is the default folder, `voxel` says what the default voxel size is, `units` names the clouds that
    have a unit each, and `json` says what --json prints.
    """
    add = parser.add_argument
    add("--out", default=Path(out), **OUT)
    voxel = f"spacing of downsampled points, metres; other lengths are multiples of it (default: {voxel})"
    add("--voxel", type=float, help=voxel)
    several: dict[str, Any] = {"action": "append"} if len(units) > 1 else {"default": "m"}
    shown = f"unit of the coordinates: {', '.join(METRES)} (default: m)"
    if len(units) > 1:
        shown += f". Give it once for both, or twice, for {units[0]} and {units[1]}"
    add("--units", choices=list(METRES), metavar="U", help=shown, **several)
    add("--json", action="store_true", help=f"print {json} on stdout, and everything else on stderr")
    columns = "float32 numbers per point of a .bin file (default: 4 of KITTI or 5 of nuScenes, by content)"
    add("--columns", type=int, metavar="N", help=columns)
    descriptor = "fcgf is learned, fpfh needs no training (default: %(default)s)"
    add("--descriptor", choices=DESCRIPTORS, default=DESCRIPTORS[0], help=descriptor)
    weights = "a .safetensors file of `pcreg train` (default: the shipped one)"
    add("--weights", type=Path, metavar="FILE", help=weights)
    add("--device", default="cpu", help="cpu, cuda or auto (default: %(default)s)")
    add("--seed", type=int, default=0, help="same seed, same result (default: %(default)s)")
    add_flags(parser)


def folder(text: str) -> Path:
    """A value of --out, or another folder."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; name a folder, or . for the working folder")
    return Path(os.path.expanduser(text))


def viewpoint(text: str) -> ViewpointOption:
    """A value of --viewpoint."""
    try:
        return check_viewpoint(text.split(",") if "," in text else text)
    except InputError as error:
        raise argparse.ArgumentTypeError(f"{text}: use auto, sensor, or X,Y,Z in metres") from error


def direction(text: str) -> tuple[float, float, float]:
    """A value of --gravity."""
    try:
        x, y, z = (float(word) for word in ("0,0,1" if text == "z" else text).split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not a direction; use z, or X,Y,Z for up") from error
    return x, y, z


# Options that some verbs share
OUT = {"type": folder, "metavar": "DIR", "help": "folder of results (default: %(default)s)"}
CLUSTER = {
    "metavar": "ADDRESS",
    "help": "use the workers of this Dask scheduler, such as tcp://10.0.0.1:8786",
}
SCAN_VIEWPOINT = {
    "type": viewpoint,
    "default": "auto",
    "metavar": "V",
    "help": "position of the sensor in the frame of each scan, as for `pcreg register` (default: auto)",
}


def run(options: argparse.Namespace, command: Callable[[argparse.Namespace, TextIO], bool]) -> int:
    """Run a command, which takes the options and the stream for --json; returns its exit status.

    The status is 0 if the command returns True, 1 if False, and else as in pcreg.cli.exit_status.
    """

    def go() -> int:
        with exit_status.output(quiet=options.quiet, verbose=options.verbose, json=options.json) as stdout:
            return 0 if command(options, stdout) else 1

    return exit_status.status(go, with_traceback=options.traceback)


def for_both(options: argparse.Namespace, name: str, default: Any) -> tuple[Any, Any]:
    """Values for two clouds of an option that is given once for both, or twice; InputError for more."""
    given = getattr(options, name) or [default]
    if len(given) > 2:
        raise InputError(f"--{name} is given too often; give it once for both clouds or once for each")
    return given[0], given[-1]


def check_out(folder: Path) -> None:
    """Raise InputError unless files can be written into `folder`, which may not exist yet."""
    if os.path.isfile(folder):  # Path.is_file raises if a parent folder may not be searched
        raise InputError(f"{folder}: --out is a file; name a folder")
    with writing(folder):
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=there):
            pass


def refuse_to_overwrite(files: Iterable[str | Path], *written: Path) -> None:
    """Raise InputError if one of the input `files` is among those that will be `written`."""
    for file in files:
        if os.path.realpath(os.path.expanduser(file)) in map(os.path.realpath, written):
            raise InputError(f"{file}: would be overwritten; name another folder with --out")


def registrar_of(options: argparse.Namespace) -> Registrar:
    """Registrar with the options of `add_options`; InputError for an option that cannot be used."""
    check_seed(options.seed)
    if options.columns is not None and not 3 <= options.columns <= MAX_COLUMNS:
        raise InputError(f"--columns {options.columns}: rows of a .bin have 3 to {MAX_COLUMNS} numbers")
    check_out(options.out)
    return Registrar(
        descriptor=options.descriptor, weights=options.weights, voxel=options.voxel, device=options.device
    )
