"""Work on several cores; no answer depends on their number."""

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator
from functools import cache
from threading import Lock
from typing import TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits

MIN_POINTS_PER_THREAD = 2_000

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_given: list[int] = []  # cores of a worker process; empty in others


def allowed() -> list[int]:
    """Numbers of the cores that this process may use."""
    if _given:
        return list(_given)
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def give(cores: list[int], *, pin: bool = False) -> None:
    """Limit this process, with BLAS, OpenMP and PyTorch, to some cores until it ends.

    Call this in the thread that will compute: OpenMP and PyTorch have a limit per thread. With `pin` all
    threads stay on these cores.
    """
    _given[:] = cores
    for library in ("OMP", "OPENBLAS", "MKL"):  # for libraries that are loaded later
        os.environ[f"{library}_NUM_THREADS"] = str(len(cores))
    threadpool_limits(len(cores))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(len(cores))
    if pin and hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):  # threads that start later inherit this
            os.sched_setaffinity(int(thread), cores)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(allowed())


def cores_for(points: int) -> int:
    """The number of cores to use for one query of a tree by this number of points.

    A thread with few points takes longer than it saves: 32 threads refined in 0.42 s, 16 in 0.16 s.
    """
    return max(1, min(cores(), points // MIN_POINTS_PER_THREAD))


class one_for_blas(ContextDecorator):
    """Limit BLAS to the calling thread, as a context manager or a decorator.

    BLAS would spread narrow matrices over all cores, which wait busily for each other, and round sums
    differently. The limit holds for the process: the first of several blocks sets it, the last restores it.
    """

    _lock, _inside, _limits = Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            if one_for_blas._inside == 0:
                _let_any_thread_limit()
                one_for_blas._limits = _blas().limit(limits=1)
            one_for_blas._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            one_for_blas._inside -= 1
            if one_for_blas._inside == 0:
                _let_any_thread_limit()
                one_for_blas._limits.restore_original_limits()
                _let_any_thread_limit()


def _let_any_thread_limit() -> None:
    """Let any thread limit OpenBLAS: threadpoolctl ignores all but the last one that did."""
    OpenBLASController.clear_controlling_thread(force=True)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS of NumPy and SciPy; finding it takes as long as a step of a registration."""
    return ThreadpoolController().select(user_api="blas")


def each(do: Callable[[Item], Answer], items: Iterable[Item], device: str = "cpu") -> list[Answer]:
    """Map `do` over items on threads, and return the results in order.

    NumPy or SciPy should do most of the work in `do`. On a GPU the items are processed in turn, as threads
    would wait for Python's lock.
    """
    items = list(items)
    if device != "cpu" or min(len(items), cores()) < 2:
        return [do(item) for item in items]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(do, items))
