"""A Dask cluster as an executor: processes of several machines that see the same folders.

Each worker has one thread and, for work on the CPU, is pinned to a core of its own, as those of one machine
are (pcreg.runtime.workers). The work of one that is gone is done by another.
"""

import os
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager, suppress

from distributed import Client, KilledWorker, Worker, WorkerPlugin
from distributed.comm import CommClosedError

from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError

MAX_SECONDS = 20  # until a scheduler answers


class Settled(WorkerPlugin):
    """What makes a worker like those of one machine, for as long as it runs; later ones, too."""

    name, idempotent = "pcreg", True

    def setup(self, worker: Worker) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)
        if sys.platform == "linux":
            core = self.take_core()
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), {core})

    def take_core(self) -> int:
        """A core that no other worker of this machine has, or any if there is none."""
        cores = parallel.allowed()
        # A name of a socket without a file is given back when the process ends, however it ends.
        self.taken = socket.socket(socket.AF_UNIX)
        for core in cores:
            with suppress(OSError):
                self.taken.bind(f"\0pcreg worker on core {core}")
                return core
        return cores[os.getpid() % len(cores)]


@contextmanager
def executor_at(address: str, device: str) -> Iterator[Executor]:
    """The workers of the scheduler at this address, for work on the device.

    Raises InputError if there is none, it has no workers, or they have several threads.
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
        if device == "cpu":
            client.register_plugin(Settled())
        try:
            yield client.get_executor(pure=False)
        except (KilledWorker, CommClosedError, CancelledError) as error:
            raise InputError(
                f"{address}: the scheduler is gone, or one piece of work ended several workers, perhaps for "
                "want of memory; run again, what is done is kept"
            ) from error
