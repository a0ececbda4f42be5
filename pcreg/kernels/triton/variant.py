"""What a launch would have compiled, as another process can compile it, and whether Triton's cache has it."""

from collections.abc import Callable, Iterable
from dis import get_instructions
from functools import cache
from hashlib import sha256
from threading import Lock, get_ident
from typing import NamedTuple

from triton import AsyncCompileMode, JITFunction, knobs
from triton.runtime.cache import get_cache_manager

_hooking = Lock()  # there is one hook for all threads


class Variant(NamedTuple):
    """A kernel for certain types, constants and options."""

    module: str
    name: str
    data: str  # all that it is compiled for, as JITFunction.preload takes it
    hash: str  # under which Triton keeps it

    @property
    def is_stored(self) -> bool:
        """Whether the cache has it."""
        return get_cache_manager(self.hash).get_group(f"{self.name[:150]}.json") is not None


def settle(kernel) -> None:
    """Have Triton hash what a kernel calls before it hashes the kernel.

    Its hash depends on whether they were hashed (Triton 3.5 to 3.7). So it is the same in every process,
    whatever was compiled there before.
    """
    if isinstance(kernel, JITFunction) and kernel.hash is None:
        for other in _called_by(kernel.fn):
            settle(other)
        _ = kernel.cache_key


def source_length(kernel) -> int:
    """Characters of a kernel and of what it calls, each once: those of many take long to compile."""
    if not isinstance(kernel, JITFunction):
        return 0
    met, left = {kernel.fn: kernel}, [kernel]
    while left:
        for other in _called_by(left.pop().fn):
            if other.fn not in met:  # Python's function: Triton's is looked up by its hash
                met[other.fn] = other
                left.append(other)
    return sum(len(other.src) for other in met.values())


@cache
def _called_by(function: Callable) -> list[JITFunction]:
    """What Python's function of a kernel names that Triton compiles with it."""
    globals_read = (each.argval for each in get_instructions(function) if each.opname == "LOAD_GLOBAL")
    named = map(function.__globals__.get, globals_read)
    return [other for other in named if isinstance(other, JITFunction)]


def variants_of(launches: Iterable[tuple]) -> list[Variant | None]:
    """Of launches on the current device, each a kernel, its arguments, constants and options.

    None for those that Triton has loaded. It does all that it does before it compiles, and then does not: so
    the hash and what a kernel is compiled for are its own.
    """
    found, thread = [], get_ident()

    def note(*, fn, compile, **_) -> bool | None:
        if get_ident() != thread:  # which compiles meanwhile
            return theirs and theirs(fn=fn, compile=compile, **_)
        mode.noted = fn.module, fn.name, compile["specialization_data"]
        return None

    with _hooking:
        theirs, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, note
        try:
            for kernel, arguments, constants, options in launches:
                settle(kernel)
                with _Noting() as mode:
                    kernel.warmup(*arguments, grid=(1,), **constants, **options)
                found.append(mode.variant)
        finally:
            knobs.runtime.jit_cache_hook = theirs
    return found


class _Noting(AsyncCompileMode):
    """Where others hand a kernel to an executor this leaves it."""

    variant: Variant | None = None

    def __init__(self) -> None:
        super().__init__(None)

    def submit(self, key, compile_fn, finalize_fn) -> None:
        self.variant = Variant(*self.noted, sha256(key.encode()).hexdigest())
