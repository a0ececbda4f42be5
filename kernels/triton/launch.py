"""Launching a Triton kernel again without asking anew how to compile it.

Triton looks at every argument of every launch to find the compiled variant, which takes the host as long
as a small cloud's convolution takes the GPU, or longer. Here the caller names what the variant depends on.
"""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext

import torch

_compiled: dict[Hashable, tuple] = {}


def launch(kernel, grid: int, arguments: tuple, constants: dict, variant: Hashable, **options) -> None:
    """kernel[grid](*arguments, **constants, **options), where `constants` come last and in their order.

    `variant` must tell apart all launches for which Triton would compile another kernel: by the values of
    constants and options, dtypes, which arguments are None, and those integers that it specializes.
    Pointers that it specializes must always be `aligned`. The first argument is a tensor.
    """
    if grid == 0:
        return
    device = arguments[0].device
    key = kernel, device, variant
    with _where_triton_launches(device):
        known = _compiled.get(key)
        if known is None:
            compiled = kernel[(grid,)](*arguments, **constants, **options)
            if compiled is not None:  # None: from Triton's interpreter
                _compiled[key] = compiled, tuple(constants.values())
        else:
            compiled, values = known
            compiled[(grid, 1, 1)](*arguments, *values)


def _where_triton_launches(device: torch.device) -> AbstractContextManager:
    """With `device` as the current one, which it is already but for those who use several."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)
