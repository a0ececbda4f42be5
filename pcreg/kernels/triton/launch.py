"""Launching a Triton kernel again without asking anew how to compile it.

Triton looks at every argument of every launch to find the compiled variant, which takes the host as long
as a small cloud's convolution takes the GPU, or longer. Here the caller names what the variant depends on.
A rehearsal notes what would be launched, so that all of it can be compiled side by side beforehand.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pcreg.kernels.triton.loaded import Launch, current, load, loaded

Rehearsal = dict[Hashable, Launch]  # of each variant one
_rehearsal: ContextVar[Rehearsal | None] = ContextVar("_rehearsal", default=None)


def launch(kernel, grid: int, arguments: tuple, constants: dict, variant: Hashable, **options) -> None:
    """kernel[grid](*arguments, **constants, **options), where `constants` come last and in their order.

    `variant` must tell apart all launches for which Triton would compile another kernel: by the values of
    constants and options, dtypes, which arguments are None, and the `specialization` of those integers that
    it specializes. Pointers that it specializes must always be `aligned`. The first argument is a tensor.
    A kernel that is being compiled is waited for, and raises here what its compilation raises.
    """
    device = arguments[0].device
    key = kernel.fn, device, variant  # the Python function: the hash of a kernel is looked up by its source
    noted = _rehearsal.get()
    if noted is not None:
        noted[key] = Launch(kernel, arguments, constants, options)
        return
    if grid == 0:
        return
    with current(device):
        known = loaded.get(key) or load(key, Launch(kernel, arguments, constants, options))
        if known is None:  # Triton interprets
            kernel[(grid,)](*arguments, **constants, **options)
        else:
            known(grid, device, arguments)


def is_rehearsal() -> bool:
    """Whether this thread is within a `rehearsal`, where results hold anything."""
    return _rehearsal.get() is not None


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
