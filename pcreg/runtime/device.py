"""Devices and libraries that not every machine has."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pcreg.runtime.errors import InputError


def choose_device(name: str) -> str:
    """`cpu`, `cuda` or `cuda:N` if this machine has it; for `auto`, `cuda` if it can be had, else `cpu`.

    Raises InputError for a device that is not there.
    """
    if name == "cpu":
        return name
    import torch  # takes a second

    if name == "auto":
        return "cuda" if torch.cuda.is_available() and find_spec("triton") else "cpu"
    kind, _, number = name.partition(":")
    is_number = not number or number.isdecimal()
    if kind != "cuda" or not is_number or int(number or 0) >= torch.cuda.device_count():
        raise InputError(f"device={name}: not on this machine; use auto, cpu, cuda or cuda:N")
    if find_spec("triton") is None:
        raise InputError(f"device={name}: needs Triton, which PyTorch for this system lacks; use cpu")
    return name


def load_open3d() -> Any:
    """Open3D; InputError with the remedy if it, or a system library that it needs, is missing."""
    try:
        return import_module("open3d")
    except (ImportError, OSError) as error:
        raise InputError(
            f"Open3D cannot be loaded ({error}); install it (pip install open3d) and the system library that "
            "is named, on Debian and Ubuntu one of libusb-1.0-0, libegl1, libgl1 and libx11-6"
        ) from error
