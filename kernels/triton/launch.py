"""Launching a Triton kernel again without asking anew how to compile it.

Triton looks at every argument of every launch to find the compiled variant, which takes the host as long
as a small cloud's convolution takes the GPU, or longer. Here the caller names what the variant depends on.
A rehearsal notes what would be launched, so that all of it can be compiled side by side beforehand.
"""

from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple

import torch
from triton import knobs
from triton.runtime import driver

from pcreg.kernels.compiler import MIN_CORES, compiler_for
from pcreg.kernels.triton.variant import Variant, settle, variants_of

# That compile what processes do not: a kernel holds Python's lock for a tenth of its time, and beyond these
# they wait for it. On an H200's host with 16 cores 5 took 14 s for 43 kernels, 8 took 11.5, 10 took 10.1.
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
                    settle(kernel)
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
    """Compile what a rehearsal noted, on so many cores: how many kernels were not loaded yet.

    Processes do it where there is much to do. Threads of this process load the kernels, and compile what no
    other process has: an error is raised here.
    """
    with ThreadPoolExecutor(min(cores, MAX_THREADS)) as pool, closing(_as_stored(noted, cores)) as stored:
        loading = [pool.submit(_compile, key, noted[key]) for key in stored]
        return sum(done.result() for done in loading)


def _as_stored(noted: Rehearsal, cores: int) -> Iterator[Hashable]:
    """The keys of what was noted: those in Triton's cache, others once a process has put them there, and last
    what none has.
    """
    left = [key for key in noted if key not in _compiled]
    missing: dict[Hashable, Variant] = {}
    if left and cores >= MIN_CORES and not knobs.runtime.interpret:
        # A long source takes long: begun last, it would be waited for by all.
        left.sort(key=lambda key: -len(noted[key].kernel.src))
        with _where_triton_launches(noted[left[0]].arguments[0].device):
            variants = zip(left, variants_of(noted[key] for key in left), strict=True)
            missing = {key: variant for key, variant in variants if variant and not variant.is_stored}
            target = driver.active.get_current_target() if missing else None
    yield from (key for key in left if key not in missing)
    compiler = compiler_for(len(missing), cores)
    if compiler is not None:
        keys = list(missing)
        asked = list(missing.values())
        for number in compiler.compile(asked, target=vars(target), cache=knobs.cache.dir):
            del missing[keys[number]]
            yield keys[number]
    yield from missing


def _compile(key: Hashable, noted: Launch) -> bool:
    kernel, arguments, constants, options = noted
    with _compiling.setdefault(key, Lock()), _where_triton_launches(arguments[0].device):
        if key in _compiled:
            return False
        settle(kernel)
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
