"""Worker processes of this machine, each limited to its cores, or of a cluster.

On the CPU each worker has one core, on which every sum has one order: no answer depends on their number.
"""

import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pcreg.runtime import parallel
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.extras import require
from pcreg.runtime.files import writing
from pcreg.runtime.termination import deferred, end_with_parent

# A number of processes, by default one per core or PER_GPU, a running executor, or a Dask scheduler's address
Workers = int | Executor | str | None

# Pairs per second on an H100 with 16 cores by 1, 2, 4 and 8 processes: 8.4, 15.7, 23.3 and 27.9 of prepared
# clouds of 21,000 points, all refused; 9.8, 14.5, 20.9 and 23.8 of rooms of 270,000 points, not prepared.
PER_GPU = 4
BROKEN = (
    "a worker process ended unexpectedly, probably out of memory; run again with fewer workers, as in "
    "workers=1: the run continues after the finished work"
)
NOT_BEGUN = (
    "the worker processes could not start: each imports the main script, which must be a file; put its calls"
    ' under `if __name__ == "__main__":`, or give workers=0'
)


@contextmanager
def executor_of(workers: Workers, device: str = "cpu") -> Iterator[Executor | None]:
    """Yield an executor whose workers use the device, or None for 0 workers.

    With 0 the caller does the work. A given executor stays open. Processes that are started here
    end with the block, or with this process.
    """
    if isinstance(workers, Executor):
        yield workers
    elif isinstance(workers, str):
        require("cluster", f"{workers}: a cluster")
        from pcreg.runtime.cluster import executor_at  # dask takes a second to import

        with executor_at(workers, device) as executor:
            yield executor
    elif workers == 0:
        yield None
    elif workers is None or (isinstance(workers, int) and workers > 0):
        with _processes(workers, device) as pool:
            yield pool
    else:
        raise InputError(f"workers={workers!r}: give a number of processes, 0 for none")


@contextmanager
def _processes(count: int | None, device: str) -> Iterator[Executor]:
    """Yield a pool of `count` processes, each limited to its share of the cores, on the CPU to one."""
    cores, context, on_gpu = parallel.allowed(), get_context("spawn"), device != "cpu"
    count = count or (min(PER_GPU, len(cores)) if on_gpu else len(cores))
    cores_of_next, begun = context.SimpleQueue(), context.Event()
    for number in range(count):
        share = cores[number::count] if on_gpu else []
        cores_of_next.put(share or [cores[number % len(cores)]])
    pool = ProcessPoolExecutor(count, context, _begin, (cores_of_next, begun))
    for _ in range(count if on_gpu else 0):
        pool.submit(choose_device, device)  # imports PyTorch while this process compiles kernels
    try:
        yield pool
    except BrokenExecutor as error:
        raise InputError(BROKEN if begun.is_set() else NOT_BEGUN) from error
    finally:
        pool.shutdown(cancel_futures=True)  # after an error nothing waits for the pending calls


def map_unordered(
    executor: Executor | None, function: Callable[..., Any], shared: tuple[Any, ...], items: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield (item, function(*shared, item)) as calls end, in any order.

    Without an executor they run here. Function, arguments and results must be picklable. Each worker reads
    `shared` once, from a file in the folder for temporary files, which a cluster must share ($TMPDIR). After
    Ctrl-C or SIGTERM running calls end and are yielded before the signal is raised; a second does not wait.
    """
    if executor is None:
        for item in items:
            yield item, function(*shared, item)
        return
    pending: dict[Future[Any], Any] = {}
    with TemporaryDirectory(prefix="pcreg-") as folder:
        work = Path(folder) / "work.pickle"
        with writing(work):
            work.write_bytes(pickle.dumps((function, shared)))
        words = "finishing the current work; press Ctrl-C again to stop at once"
        try:
            with deferred(words) as deferral:
                pending = {executor.submit(_call, os.getcwd(), work, item): item for item in items}
                yield from _completed(pending, deferral)
        finally:
            for future in pending:
                future.cancel()


def _completed(pending: dict[Future[Any], Any], deferral: deferred) -> Iterator[tuple[Any, Any]]:
    """Yield item and result of each call that ends; after a signal only of those that already run."""
    for future in as_completed(pending):
        yield pending.pop(future), future.result()
        if deferral.came is not None:
            break
    begun = [future for future in pending if not future.cancel()]
    for future in as_completed(begun):
        yield pending.pop(future), future.result()


def _begin(cores_of_next: Any, begun: Any) -> None:
    """Initialise a worker: limit it to its cores, ignore Ctrl-C, and end it with its parent."""
    begun.set()
    parallel.give(cores_of_next.get(), pin=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


@lru_cache(maxsize=1)
def _work(path: Path) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    unseen = f"{path.parent}: a worker does not see it; set TMPDIR to a shared folder"
    with refusing(unseen, FileNotFoundError):
        return pickle.loads(path.read_bytes())


def _call(folder: str, path: Path, item: Any) -> Any:
    with refusing(f"{folder}: a worker does not see this folder; work in a shared one", OSError):
        os.chdir(folder)  # a cluster's worker may serve several callers in turn
    function, shared = _work(path)
    try:
        return function(*shared, item)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error that cannot be unpickled looks like a dead worker
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise
