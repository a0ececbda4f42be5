"""A Dask cluster as an executor: processes of several machines that see the same folders.

Each worker has one thread, is pinned to one core, as those of one machine are (pcreg.runtime.workers), and
works in the folder of the caller. The work of one that is gone is done by another.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager

from distributed import Client, KilledWorker, Worker, WorkerPlugin
from distributed.comm import CommClosedError

from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError

MAX_SECONDS = 20  # until a scheduler answers


class Settled(WorkerPlugin):
    """What makes a worker like those of one machine; later ones, too."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def setup(self, worker: Worker) -> None:
        os.chdir(self.folder)
        os.environ["OMP_NUM_THREADS"] = "1"
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        if sys.platform == "linux":
            cores = parallel.allowed()
            core = cores[os.getpid() % len(cores)]
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), {core})


@contextmanager
def executor_at(address: str) -> Iterator[Executor]:
    """The workers of the scheduler at this address.

    Raises InputError if there is none, it has no workers, or they have several threads or other folders.
    """
    try:
        client = Client(address, timeout=MAX_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{address}: no Dask scheduler answers; start one with `dask scheduler`") from error
    with client:
        threads = [worker["nthreads"] for worker in client.scheduler_info(-1)["workers"].values()]
        if not threads or max(threads) > 1:
            found = f"has {len(threads)} workers" if not threads else "has workers with several threads"
            raise InputError(f"{address}: {found}; start them with `dask worker {address} --nthreads 1`")
        try:
            client.register_plugin(Settled(os.getcwd()))
        except OSError as error:
            raise InputError(
                f"{os.getcwd()}: workers do not see this folder; work in a shared one"
            ) from error
        try:
            yield client.get_executor(pure=False)
        except (KilledWorker, CommClosedError, CancelledError) as error:
            raise InputError(
                f"{address}: the scheduler is gone, or one piece of work ended several workers, perhaps for "
                "want of memory; run again, what is done is kept"
            ) from error
