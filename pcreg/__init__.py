"""Point cloud registration with learned descriptors on native points."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcreg.runtime import VERSION as __version__

if TYPE_CHECKING:
    from pcreg.features.fcgf import FCGF
    from pcreg.features.fpfh import FPFH
    from pcreg.mapping.map import Map
    from pcreg.mapping.mapping import register_all
    from pcreg.registration.api import register, verify
    from pcreg.registration.matching.prior import Prior
    from pcreg.registration.registrar import Registrar
    from pcreg.registration.result import Registration
    from pcreg.runtime.errors import InputError

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
# Modules of the names, imported at their first use: `pcreg --help` needs none of them
PLACES = {
    "features.fcgf": ["FCGF"],
    "features.fpfh": ["FPFH"],
    "mapping.map": ["Map"],
    "mapping.mapping": ["register_all"],
    "registration.api": ["register", "verify"],
    "registration.matching.prior": ["Prior"],
    "registration.registrar": ["Registrar"],
    "registration.result": ["Registration"],
    "runtime.errors": ["InputError"],
}


def __getattr__(name: str) -> Any:
    """Import a name of PLACES."""
    for module, names in PLACES.items():
        if name in names:
            return getattr(import_module(f"pcreg.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
