"""Point cloud registration with learned descriptors on native points."""

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


def __getattr__(name: str) -> Any:
    """Names that are looked up at their first use, for what they import."""
    if name == "Map":
        from pcreg.mapping.map import Map

        return Map
    if name == "register_all":
        from pcreg.mapping.mapping import register_all

        return register_all
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
