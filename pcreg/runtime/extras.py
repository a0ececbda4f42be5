"""Optional packages by extra, and the commands that install them."""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shlex import join
from subprocess import list2cmdline
from typing import Any

from pcreg.runtime.errors import InputError, refusing

CHECKOUT = Path(__file__).parents[2]
PACKAGES = {  # required for each extra of pyproject.toml
    "fpfh": ("open3d",),
    "evaluate": ("hydra", "matplotlib", "omegaconf", "pydantic", "torch", "yaml"),
    "train": ("hydra", "omegaconf", "pydantic", "tensorboard", "torch", "yaml"),
    "gpu": ("torch",),
    "las": ("laspy", "lazrs"),
    "e57": ("pye57",),
    "cluster": ("distributed",),
    "odometry": ("small_gicp",),
    "kiss": ("kiss_matcher",),
}


def command_for(extra: str) -> str:
    """The pip command that installs an extra, or the core for ''; editable in a checkout."""
    extras = f"[{extra}]" if extra else ""
    checkout = (CHECKOUT / "pyproject.toml").is_file()
    what = ["-e", f"{CHECKOUT}{extras}"] if checkout else [f"pcreg{extras}"]
    words = [sys.executable, "-m", "pip", "install", *what]
    return list2cmdline(words) if os.name == "nt" else join(words)


def require(extra: str, purpose: str) -> None:
    """Raise InputError, with the command that installs it, if a package of an extra is missing."""
    if missing := [name for name in PACKAGES[extra] if find_spec(name) is None]:
        raise InputError(f"{purpose} needs {', '.join(missing)}; type: {command_for(extra)}")


def load_open3d() -> Any:
    """Import Open3D; InputError, with the remedy, if it or a system library is missing."""
    remedy = (
        f"install it ({command_for('fpfh')}) and the system library that is named, on Debian and Ubuntu "
        "one of libusb-1.0-0, libegl1, libgl1 and libx11-6"
    )
    with refusing(f"Open3D cannot be loaded ({{error}}); {remedy}", ImportError, OSError):
        return import_module("open3d")
