"""What a launch would have compiled, as another process can compile it, and whether Triton's cache has it."""

from collections.abc import Iterable, Iterator
from dis import get_instructions
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
        for other in _named_in(kernel):
            settle(other)
        _ = kernel.cache_key


def source_length(kernel) -> int:
    """Characters of a kernel and of what it calls, each once: those of many take long to compile."""
    lengths, left = {}, [kernel]
    while left:
        other = left.pop()
        if isinstance(other, JITFunction) and other.fn not in lengths:  # Python's function: see `settle`
            lengths[other.fn] = len(other.src)
            left.extend(_named_in(other))
    return sum(lengths.values())


def _named_in(kernel: JITFunction) -> Iterator[object]:
    """What the names of its module stand for that occur in a kernel."""
    for instruction in get_instructions(kernel.fn):
        if instruction.opname == "LOAD_GLOBAL":
            yield kernel.fn.__globals__.get(instruction.argval)


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
