"""Point cloud registration with learned descriptors on native points."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcreg.features.fcgf import FCGF
from pcreg.features.fpfh import FPFH
from pcreg.registration.api import register, verify
from pcreg.registration.matching.prior import Prior
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.runtime import VERSION as __version__
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    from pcreg.mapping.map import Map
    from pcreg.mapping.mapping import register_all

__all__ = [
    "FCGF",
    "FPFH",
    "InputError",
    "Map",
    "Prior",
    "Registrar",
    "Registration",
    "__version__",
    "register",
    "register_all",
    "verify",
]
# Modules of names that are looked up at their first use, for what they import
LATE = {"Map": "pcreg.mapping.map", "register_all": "pcreg.mapping.mapping"}


def __getattr__(name: str) -> Any:
    """Import one of LATE."""
    if name in LATE:
        return getattr(import_module(LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
