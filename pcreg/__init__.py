"""Point cloud registration with learned descriptors on native points."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcreg.runtime import VERSION as __version__

if TYPE_CHECKING:
    from pcreg.features.fcgf import FCGF as FCGF
    from pcreg.features.fpfh import FPFH as FPFH
    from pcreg.mapping.map import Map as Map
    from pcreg.mapping.mapping import register_all as register_all
    from pcreg.registration.api import register as register
    from pcreg.registration.api import verify as verify
    from pcreg.registration.matching.prior import Prior as Prior
    from pcreg.registration.registrar import Registrar as Registrar
    from pcreg.registration.result import Registration as Registration
    from pcreg.runtime.errors import InputError as InputError

# Module of each public name, imported at its first use: `pcreg --help` needs none of them
PLACES = {
    "FCGF": "features.fcgf",
    "FPFH": "features.fpfh",
    "Map": "mapping.map",
    "register_all": "mapping.mapping",
    "register": "registration.api",
    "verify": "registration.api",
    "Prior": "registration.matching.prior",
    "Registrar": "registration.registrar",
    "Registration": "registration.result",
    "InputError": "runtime.errors",
}
__all__ = [*PLACES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a name of PLACES."""
    if name in PLACES:
        return getattr(import_module(f"pcreg.{PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, whether imported yet or not."""
    return __all__
