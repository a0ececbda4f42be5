"""The kernels that are on their devices, each brought there once, whoever asks first.

Where other processes compile a kernel, whoever needs it waits until Triton's cache has it, and for no other.
"""

import os
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from threading import Event, Lock
from typing import NamedTuple

import torch
from triton.runtime import driver

from pcreg.kernels.triton.variant import settle

loaded: dict[Hashable, "Compiled"] = {}
awaited: dict[Hashable, Event] = {}  # by the same keys: kernels that other processes compile
_loading: dict[Hashable, Lock] = {}  # two threads compile nothing twice
# Triton 3.6 imports what launches a kernel, compiled from C, under one name for all kernels. Python then has
# threads share a module, so that one may take from it what launches the kernel of another. One at a time:
_IMPORTING = "importing"
_AS_IT_IS = nullcontext()

# Whoever would tell a forked process that a kernel is there, or leave a lock, is not forked with it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=awaited.clear)
    os.register_at_fork(after_in_child=_loading.clear)


class Compiled(NamedTuple):
    """A kernel that is on its device, and the values of its constants."""

    kernel: object  # of triton.compiler
    constants: tuple

    def __call__(self, grid: int, device: torch.device, arguments: tuple) -> None:
        """As kernel[grid](*arguments, *constants), which asks for much beforehand that is known here."""
        kernel, constants = self
        stream = driver.active.get_current_stream(device.index)
        of_kernel = kernel.function, kernel.packed_metadata
        no_hooks = None, None, None
        kernel.run(grid, 1, 1, stream, *of_kernel, *no_hooks, *arguments, *constants)


class Launch(NamedTuple):
    """What a launch would compile."""

    kernel: object
    arguments: tuple  # the first is a tensor
    constants: dict
    options: dict

    @property
    def device(self) -> torch.device:
        return self.arguments[0].device


def load(key: Hashable, wanted: Launch) -> Compiled | None:
    """The kernel of this key, from Triton's cache, where it may be waited for, or compiled here.

    None from Triton's interpreter. Raises what Triton's compiler raises, at each call anew.
    """
    stored = awaited.get(key)
    if stored is not None:
        stored.wait()
    kernel, arguments, constants, options = wanted
    with _loading.setdefault(key, Lock()), current(wanted.device):
        if key not in loaded:
            settle(kernel)
            compiled = kernel.warmup(*arguments, grid=(1,), **constants, **options)
            if compiled is None:
                return None
            with _loading.setdefault(_IMPORTING, Lock()):
                compiled.run  # noqa: B018 it brings the kernel onto the device
            loaded[key] = Compiled(compiled, tuple(constants.values()))
        return loaded[key]


def current(device: torch.device) -> AbstractContextManager:
    """With `device` as the current one, which it is already but for those who use several."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _AS_IT_IS
    return torch.cuda.device(device)
