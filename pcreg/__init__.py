"""Point cloud registration with learned descriptors on native points."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pcreg.features.fpfh import FPFH
from pcreg.registration.api import register
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.runtime.errors import InputError

if TYPE_CHECKING:
    from pcreg.features.fcgf import FCGF

__all__ = ["FCGF", "FPFH", "InputError", "Registrar", "Registration", "__version__", "register"]
__version__ = version("pcreg")


def __getattr__(name: str) -> Any:
    """FCGF, imported when it is first asked for: PyTorch takes a second."""
    if name != "FCGF":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pcreg.features.fcgf import FCGF

    return FCGF
