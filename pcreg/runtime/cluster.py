"""A Dask cluster as an executor, on machines that share their folders.

Each worker has one thread. If a worker is lost, the scheduler gives its calls to another one.
"""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager

from distributed import Client, KilledWorker, Worker, WorkerPlugin
from distributed.comm import CommClosedError, connect
from distributed.security import Security

from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.records import code_fingerprint

MAX_SECONDS = 20  # to wait for a scheduler's answer


class Share(WorkerPlugin):
    """Limit each worker, including those that join later, to its share of the cores."""

    name, idempotent = "pcreg", True

    def __init__(self, workers_per_machine: int) -> None:
        self.workers = workers_per_machine  # 0: each uses one core

    async def setup(self, worker: Worker) -> None:
        """Call `parallel.give` in the worker's only computing thread."""
        cores = parallel.allowed()
        share = cores[: max(1, len(cores) // self.workers)] if self.workers else cores[:1]
        await asyncio.wrap_future(worker.executors["default"].submit(parallel.give, share))


@contextmanager
def executor_at(address: str, device: str) -> Iterator[Executor]:
    """Yield the workers of a scheduler; InputError for none, several threads in one, or another pcreg."""
    remedy = "start one with `dask scheduler` and give the address it prints, such as tcp://10.0.0.1:8786"
    unreachable = f"{address or 'no address'}: no Dask scheduler answers ({{error}}); {remedy}"
    with refusing(unreachable, OSError, RuntimeError, TypeError, ValueError):
        # Connect once first, as a Client retries; in a thread, as a notebook has an event loop in this one
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(_connect(address))).result()
        client = Client(address, timeout=MAX_SECONDS, set_as_default=False)
    with client:
        workers = client.scheduler_info(-1)["workers"].values()
        if not workers or max(worker["nthreads"] for worker in workers) > 1:
            found = "has workers with several threads" if workers else "has 0 workers"
            raise InputError(f"{address}: {found}; start them with `dask worker {address} --nthreads 1`")
        # Unpickling on a worker may raise any exception, such as ModuleNotFoundError
        with refusing(f"{address}: a worker cannot run pcreg ({{error}}); install it there", Exception):
            theirs = set(client.run(code_fingerprint, ".").values())
        if theirs != {code_fingerprint(".")}:
            raise InputError(f"{address}: a worker has another version of pcreg; install this one there")
        machines = [worker["host"] for worker in workers]
        client.register_plugin(Share(0 if device == "cpu" else max(map(machines.count, machines))))
        try:
            yield client.get_executor(pure=False)
        except (KilledWorker, CommClosedError, CancelledError) as error:
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # no reconnection errors
            raise InputError(
                f"{address}: the scheduler is gone, or one call ended several workers, perhaps as memory "
                "ran out; run the command again: it continues after the finished work"
            ) from error


async def _connect(address: str) -> None:
    """Connect to the address once; OSError or ValueError if that fails."""
    connection = connect(address, timeout=MAX_SECONDS, **Security().get_connection_args("client"))
    try:  # other services, such as Dask's dashboard, answer nothing, or what is read as a huge size
        await (await asyncio.wait_for(connection, 2 * MAX_SECONDS)).close()
    except (asyncio.TimeoutError, MemoryError) as error:
        raise ValueError("another service listens there") from error
