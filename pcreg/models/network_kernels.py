"""What a GPU runs of a network, compiled while other work goes on. It depends on the architecture alone."""

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

import torch

from pcreg.kernels.warmup import warm_up
from pcreg.models.architecture import Architecture
from pcreg.models.weights import undrawn
from pcreg.runtime import parallel

if TYPE_CHECKING:
    from pcreg.kernels.triton.compilation import Compilation

_begun: dict[tuple[Architecture, str], "Compilation"] = {}
_BEGINNING = Lock()  # clouds are described on several threads


def begin_compiling(architecture: Architecture, device: str) -> "Compilation":
    """Begin to compile all that inference by such networks takes on this GPU; once begun it is not again.

    A network is rehearsed for it, whose weights may be anything: theirs need not have been loaded.
    """
    key = replace(architecture, voxel=1.0), device  # no kernel knows the unit of length
    with _BEGINNING, torch.inference_mode():
        if key not in _begun:
            network = undrawn(architecture).to(device).eval()
            place = next(network.parameters()).device
            _begun[key] = warm_up(network.features, architecture.geometry, place, parallel.cores())
        return _begun[key]
