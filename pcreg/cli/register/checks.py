"""What `register` refuses before anything is read."""

import argparse
import os
import sys
from pathlib import Path

from pcreg.cli.register.parser import is_expanded, prior_of
from pcreg.io.cloud import MAX_COLUMNS
from pcreg.registration.clouds.inputs import check_seed, check_settings
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import check_folder


def check(options: argparse.Namespace) -> None:
    """Raise InputError for options that cannot be used, or not together."""
    if len(options.viewpoint or ()) > 2 - bool(options.batch):
        raise InputError(
            "--viewpoint is given too often; give it once for both clouds or once for each, in a batch once"
        )
    if hasattr(options, "gravity"):  # of `register`, which the options of a motion that is given lack
        prior_of(options)
    if os.path.isfile(options.out):  # which, unlike that of Path, says no where one may not look
        raise InputError(f"{options.out}: --out is a file; name a folder")
    check_seed(options.seed)
    check_settings(options.voxel, options.weights, options.device)
    if options.columns is not None and not 3 <= options.columns <= MAX_COLUMNS:
        raise InputError(f"--columns {options.columns}: rows of a .bin have 3 to {MAX_COLUMNS} numbers")
    if options.scale and (options.batch or options.near):
        raise InputError("--scale is for two clouds, without --near; leave one of the two out")
    if options.batch:
        _check_batch(options)
    elif getattr(options, "cluster", None) is not None:
        raise InputError("--cluster shares the pairs of --batch; leave it out for one pair")
    elif not options.target:
        raise InputError(f"two files are needed: {options.program} SOURCE TARGET; --help shows all")
    if options.show and sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        raise InputError("--show needs a display and there is none; --html writes a page instead")
    check_folder(options.out)


def _check_batch(options: argparse.Namespace) -> None:
    """What a list of pairs excludes."""
    if is_expanded(options) and not options.batch.lower().endswith(".csv"):
        pattern = Path(options.batch).with_name(f"*{Path(options.batch).suffix}")
        raise InputError(
            f"--batch was given several files, for the shell has expanded the pattern; quote it: '{pattern}'"
        )
    if options.source or options.html or options.show or options.no_picture:
        raise InputError(
            "--batch takes one list and writes one table; leave out SOURCE, TARGET, --html, --no-picture and "
            "--show"
        )
    if len(set(options.units)) > 1:
        raise InputError(
            f"--units {' '.join(options.units)}: the files of a batch have one unit; name it twice"
        )
