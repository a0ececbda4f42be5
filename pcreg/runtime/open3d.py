"""Open3D, whose wheel loads system libraries that not every machine has."""

from importlib import import_module
from typing import Any

from pcreg.runtime.errors import InputError


def load_open3d() -> Any:
    """Open3D; InputError with the remedy if it, or a library that it needs, is missing."""
    try:
        return import_module("open3d")
    except (ImportError, OSError) as error:
        raise InputError(
            f"Open3D cannot be loaded ({error}); install it (pip install open3d) and the system library that "
            "is named, on Debian and Ubuntu one of libusb-1.0-0, libegl1, libgl1 and libx11-6"
        ) from error
