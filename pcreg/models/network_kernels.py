"""What a GPU runs of a network, compiled while other work goes on. It depends on the architecture alone."""

from dataclasses import replace
from threading import Lock, Thread
from typing import TYPE_CHECKING

import torch

from pcreg.kernels.warmup import rehearse, start
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
    with _BEGINNING:
        if key not in _begun:
            _begun[key] = _begin(architecture, device)
        return _begun[key]


@torch.inference_mode()
def _begin(architecture: Architecture, device: str) -> "Compilation":
    starting = Thread(target=start, args=(device,))  # of a second, in which Python can do other things
    starting.start()
    network = undrawn(architecture).to(device).eval()
    needed = rehearse(network.features, architecture.geometry, next(network.parameters()).device)
    starting.join()
    # Imported where it is needed: Triton comes with builds of PyTorch for GPUs only.
    from pcreg.kernels.triton.compilation import Compilation

    return Compilation(needed, parallel.cores())
