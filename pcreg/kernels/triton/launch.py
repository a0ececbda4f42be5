"""Launch Triton kernels, each compiled once, and compile several in parallel.

Triton inspects every argument of every launch, which takes the host as long as a convolution of a small cloud
takes the GPU. Here dtypes, constants and a few named integers alone select the compiled kernel. Triton keeps
compiled kernels in its cache on disk.
"""

import atexit
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dis import get_instructions
from functools import cache
from threading import Lock, Thread
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton import JITFunction
from triton.runtime import driver

MAX_THREADS = 10  # for compilation; more threads would wait for Python's lock


class Launch(NamedTuple):
    """Kernel and arguments of a launch, which decide what is compiled."""

    kernel: object
    arguments: tuple  # the first is a tensor
    constants: dict
    options: dict


_loaded: dict[Hashable, Any] = {}  # compiled kernels, on their devices
_loading: dict[Hashable, Lock] = {}  # one for each kernel, so that none is compiled twice
_importing = Lock()  # Triton 3.6 imports the launchers of all kernels under one module name
_collected: ContextVar[dict[Hashable, Launch] | None] = ContextVar("_collected", default=None)
_no_context = nullcontext()


def launch(
    kernel, grid: int, arguments: tuple, constants: dict, specialized: tuple[int, ...] = (), **options
) -> None:
    """Run kernel[grid](*arguments, **constants, **options), without Triton's inspection of the arguments.

    Args:
        kernel: A function of `triton.jit`.
        grid: Number of programs; with 0 nothing is launched.
        arguments: The first is a tensor. Pointers that Triton specializes must be `aligned`.
        constants: The last parameters of the kernel, in their order.
        specialized: The integers among the arguments that Triton specializes.
        **options: Those of Triton, such as `num_warps`.

    Raises:
        Exception: The kernel cannot be compiled; raised by every launch.
    """
    device = arguments[0].device
    kinds = tuple(getattr(each, "dtype", None) for each in arguments)
    ones_and_sixteens = tuple((each == 1, each % 16 == 0) for each in specialized)
    # The Python function, as hashing the kernel itself would hash its source
    key = kernel.fn, device, kinds, ones_and_sixteens, *constants.values(), *options.values()
    collected = _collected.get()
    if collected is not None:
        collected.setdefault(key, Launch(kernel, arguments, constants, options))
        return
    if grid == 0:
        return
    with _current(device):
        found = _loaded.get(key) or _load(key, Launch(kernel, arguments, constants, options))
        if found is None:  # Triton interprets
            kernel[(grid,)](*arguments, **constants, **options)
            return
        stream = driver.active.get_current_stream(device.index)
        of_kernel = found.function, found.packed_metadata
        no_hooks = None, None, None
        found.run(grid, 1, 1, stream, *of_kernel, *no_hooks, *arguments, *constants.values())


def aligned(tensor: Tensor) -> Tensor:
    """Return the tensor, copied unless it is contiguous and aligned to 16 bytes, as new tensors are."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


@contextmanager
def collected_launches() -> Iterator[dict[Hashable, Launch]]:
    """Collect the launches of this thread, one for each kernel, instead of making them.

    The output tensors of the kernels are not written.
    """
    launches: dict[Hashable, Launch] = {}
    token = _collected.set(launches)
    try:
        yield launches
    finally:
        _collected.reset(token)


class Compilation:
    """Threads that compile and load kernels. A launch waits for its own kernel alone."""

    def __init__(self, launches: dict[Hashable, Launch], cores: int) -> None:
        """Start to compile the kernels that are not loaded yet, in the order of `launches`."""
        self._left = deque(item for item in launches.items() if item[0] not in _loaded)
        self._count, self._errors = len(self._left), []
        # Daemon threads instead of an executor: Python's exit waits until an executor has no work left.
        threads = range(min(self._count, cores, MAX_THREADS))
        self._threads = [Thread(target=self._work, daemon=True) for _ in threads]
        for thread in self._threads:
            thread.start()
        atexit.register(self._stop)

    def wait(self) -> int:
        """Wait for all kernels; return how many were not loaded yet. Raises the first compilation error."""
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return self._count

    def _work(self) -> None:
        with suppress(IndexError):  # none is left
            while True:
                key, wanted = self._left.popleft()
                try:
                    _load(key, wanted)
                except Exception as error:  # raised by `wait`, and by launches of this kernel
                    self._errors.append(error)

    def _stop(self) -> None:
        """Wait for kernels in progress: a thread that Python's exit stops in the compiler crashes."""
        self._left.clear()
        for thread in self._threads:
            thread.join()


def _load(key: Hashable, wanted: Launch) -> Any:
    """Load a kernel onto its device, from Triton's cache or compiled; None if Triton interprets."""
    kernel, arguments, constants, options = wanted
    with _loading.setdefault(key, Lock()), _current(arguments[0].device):
        if key not in _loaded:
            _hash_callees_first(kernel)
            compiled = kernel.warmup(*arguments, grid=(1,), **constants, **options)
            if compiled is None:
                return None
            with _importing:
                compiled.run  # noqa: B018 - brings the kernel onto the device
            _loaded[key] = compiled
        return _loaded[key]


def _current(device: torch.device) -> AbstractContextManager:
    """Make `device` the current one, unless it is."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _no_context
    return torch.cuda.device(device)


def _hash_callees_first(kernel) -> None:
    """Hash the callees of a kernel first, on which its own hash depends in Triton 3.5 to 3.7."""
    if isinstance(kernel, JITFunction) and kernel.hash is None:
        for callee in _callees(kernel.fn):
            _hash_callees_first(callee)
        _ = kernel.cache_key


@cache
def _callees(function: Callable) -> list[JITFunction]:
    """Triton functions among the globals that the Python function of a kernel uses."""
    names = (each.argval for each in get_instructions(function) if each.opname == "LOAD_GLOBAL")
    return [value for value in map(function.__globals__.get, names) if isinstance(value, JITFunction)]
