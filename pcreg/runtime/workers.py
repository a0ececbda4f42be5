"""Worker processes: of this machine, each held to its cores, or of a cluster.

On one core no answer depends on the number of workers: one thread adds up every sum and draws random numbers.
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

# Processes to start, by default one per core or PER_GPU, an executor that runs, or the address of a Dask
# scheduler
Workers = int | Executor | str | None

# An H100 with 16 cores refused 8.4, 15.7, 23.3 and 27.9 pairs a second of prepared clouds of 21,000 points
# with 1, 2, 4 and 8 processes; of rooms of 270,000 points, not prepared, it did 9.8, 14.5, 20.9 and 23.8.
PER_GPU = 4
BROKEN = (
    "a worker process ended unexpectedly, probably out of memory; run again with fewer: workers=1 (what is "
    "done is kept)"
)
NOT_BEGUN = (
    "the worker processes could not start, as each imports the script; put its calls, in a file, under"
    ' `if __name__ == "__main__":`, or give workers=0'
)


@contextmanager
def executor_of(workers: Workers, device: str = "cpu") -> Iterator[Executor | None]:
    """The executor of `workers`, which work on the device; None for 0: the work is done by the caller.

    An executor that is given goes on running. Processes of a number end with the context or this process.
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
    """A pool of so many processes, each held to its share of the cores: on the CPU to one."""
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
        pool.shutdown(cancel_futures=True)  # nobody waits for them if the caller failed


def map_unordered(
    executor: Executor | None, function: Callable[..., Any], shared: tuple[Any, ...], items: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield (item, function(*shared, item)) as calls are done, in any order; here if there is no executor.

    Function, arguments and results must be picklable. Each worker reads `shared` once, from a file in the
    folder for temporary files, which a cluster must share ($TMPDIR). Ctrl-C and SIGTERM let the calls under
    way end, and yield them, before they are raised; a second one does not wait.
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
    """Item and result of each call that ends; once a signal came, of those that cannot be cancelled."""
    for future in as_completed(pending):
        yield pending.pop(future), future.result()
        if deferral.came is not None:
            break
    begun = [future for future in pending if not future.cancel()]
    for future in as_completed(begun):
        yield pending.pop(future), future.result()


def _begin(cores_of_next: Any, begun: Any) -> None:
    """In a new worker: hold it to its cores, leave Ctrl-C to the parent, and end with the parent."""
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
        os.chdir(folder)  # a worker of a cluster may have several callers by turns
    function, shared = _work(path)
    try:
        return function(*shared, item)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # the caller could not load it, and would believe that the worker died
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise
