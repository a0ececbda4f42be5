"""Work shared among the cores; no answer depends on how many there are."""

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
    """Hold this process, and BLAS, OpenMP and PyTorch in it, to some cores for the rest of its life.

    The thread that will work calls this, for OpenMP and PyTorch keep a number per thread. With `pin` all
    threads stay on these cores.
    """
    _given[:] = cores
    for library in ("OMP", "OPENBLAS", "MKL"):  # those that are loaded later
        os.environ[f"{library}_NUM_THREADS"] = str(len(cores))
    threadpool_limits(len(cores))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(len(cores))
    if pin and hasattr(os, "sched_setaffinity"):
        for thread in os.listdir("/proc/self/task"):  # later ones inherit it
            os.sched_setaffinity(int(thread), cores)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(allowed())


def cores_for(points: int) -> int:
    """The number of cores to use for one query of a tree by so many points.

    Few points per thread do not pay for its start: a refinement took 0.42 s with 32 threads, 0.16 s with 16.
    """
    return max(1, min(cores(), points // MIN_POINTS_PER_THREAD))


class one_for_blas(ContextDecorator):
    """Within, each product of matrices is computed by the thread that calls it.

    BLAS would spread our narrow matrices over all cores, wait for them actively, and round sums in another
    way. The limit is one number for the process: the first of several callers sets it, the last one restores
    it.
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
    """Let any thread limit OpenBLAS next: threadpoolctl ignores all but the one that did before."""
    OpenBLASController.clear_controlling_thread(force=True)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS of NumPy and SciPy; finding it takes as long as a step of a registration."""
    return ThreadpoolController().select(user_api="blas")


def each(do: Callable[[Item], Answer], items: Iterable[Item], device: str = "cpu") -> list[Answer]:
    """Map `do` over items on threads, where NumPy or SciPy does most of the work; answers in their order.

    On a GPU items are done in turn: threads would wait for Python's lock.
    """
    items = list(items)
    if device != "cpu" or min(len(items), cores()) < 2:
        return [do(item) for item in items]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(do, items))
