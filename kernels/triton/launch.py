"""Launching a Triton kernel again without asking anew how to compile it.

Triton looks at every argument of every launch to find the compiled variant, which takes the host as long
as a small cloud's convolution takes the GPU, or longer. Here the caller names what the variant depends on.
A rehearsal notes what would be launched, so that all of it can be compiled side by side beforehand.
"""

from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple

import torch
from triton.runtime import driver

# That compile: a kernel holds Python's lock for a tenth of its time, and beyond these they wait for it. On an
# H200's host with 16 cores 5 took 14 s for 43 kernels, 8 took 11.5, 10 took 10.1; 16 took 12 on another.
MAX_THREADS = 10

_compiled: dict[Hashable, "Compiled"] = {}
_compiling: dict[Hashable, Lock] = {}  # by the same keys: two threads compile nothing twice


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
    arguments: tuple
    constants: dict
    options: dict


Rehearsal = dict[Hashable, Launch]  # of each variant one
_rehearsal: ContextVar[Rehearsal | None] = ContextVar("_rehearsal", default=None)


def launch(kernel, grid: int, arguments: tuple, constants: dict, variant: Hashable, **options) -> None:
    """kernel[grid](*arguments, **constants, **options), where `constants` come last and in their order.

    `variant` must tell apart all launches for which Triton would compile another kernel: by the values of
    constants and options, dtypes, which arguments are None, and the `specialization` of those integers that
    it specializes. Pointers that it specializes must always be `aligned`. The first argument is a tensor.
    """
    device = arguments[0].device
    key = kernel.fn, device, variant  # the Python function: the hash of a kernel is looked up by its source
    noted = _rehearsal.get()
    if noted is not None:
        noted[key] = Launch(kernel, arguments, constants, options)
        return
    if grid == 0:
        return
    with _where_triton_launches(device):
        known = _compiled.get(key)
        if known is None:
            with _compiling.setdefault(key, Lock()):
                known = _compiled.get(key)
                if known is None:
                    compiled = kernel[(grid,)](*arguments, **constants, **options)
                    if compiled is not None:  # None: from Triton's interpreter
                        _compiled[key] = Compiled(compiled, tuple(constants.values()))
                    return
        known(grid, device, arguments)


def specialization(*integers: int) -> tuple[tuple[bool, bool], ...]:
    """What Triton compiles a kernel for, of integer arguments that it specializes."""
    return tuple((integer == 1, integer % 16 == 0) for integer in integers)


@contextmanager
def rehearsal() -> Iterator[Rehearsal]:
    """Within, this thread launches nothing: what it would launch is noted. Results hold anything."""
    noted: Rehearsal = {}
    token = _rehearsal.set(noted)
    try:
        yield noted
    finally:
        _rehearsal.reset(token)


def compile_noted(noted: Rehearsal, cores: int) -> int:
    """Compile what a rehearsal noted, on up to as many threads as there are `cores`: how many were not there
    yet.
    """
    with ThreadPoolExecutor(min(cores, MAX_THREADS)) as pool:
        return sum(pool.map(_compile, noted, noted.values()))


def _compile(key: Hashable, noted: Launch) -> bool:
    kernel, arguments, constants, options = noted
    with _compiling.setdefault(key, Lock()), _where_triton_launches(arguments[0].device):
        if key in _compiled:
            return False
        compiled = kernel.warmup(*arguments, grid=(1,), **constants, **options)
        if compiled is None:  # from Triton's interpreter
            return False
        compiled.run  # noqa: B018 it brings the kernel onto the device
        _compiled[key] = Compiled(compiled, tuple(constants.values()))
        return True


def _where_triton_launches(device: torch.device) -> AbstractContextManager:
    """With `device` as the current one, which it is already but for those who use several."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)
