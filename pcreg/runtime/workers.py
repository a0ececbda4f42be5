"""Worker processes, each held to one core.

Numbers then do not depend on how many workers there are: every sum is added up by one thread, and
libraries that share random numbers among threads (Open3D's RANSAC) have one thread to give them to.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.leftovers import clear_once, mark
from pcreg.runtime.parent import end_with
from pcreg.runtime.termination import deferred


class Workers:
    """`count` processes, one per core by default, that start with the first work; 0: no others than this.

    A context manager, at whose end they stop. They also end when this process does.
    """

    def __init__(self, count: int | None = None):
        allowed = parallel.allowed()
        self.count = len(allowed) if count is None else count
        if self.count:
            context = get_context("spawn")
            core_of_next = context.Queue()
            for each in range(self.count):
                core_of_next.put(allowed[each % len(allowed)])
            self._pool = ProcessPoolExecutor(self.count, context, _begin, (core_of_next,))

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        if self.count:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def each(
        self, function: Callable[..., Any], shared: tuple, items: Iterable[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (item, function(*shared, item)) as calls are done, in any order.

        Function, arguments and results must be picklable; `shared` is for what is large. An exception
        in a worker is raised here. Ctrl-C and SIGTERM let the calls under way end, and yield them, before
        they are raised; a second one is not so patient. Calls that were not begun are dropped.
        """
        if not self.count:
            for item in items:
                yield item, function(*shared, item)
            return
        clear_once(Path(gettempdir()))
        with TemporaryDirectory(prefix=f"pcreg.{mark()}-") as folder:
            work = Path(folder) / "work.pickle"  # read once by each worker
            work.write_bytes(pickle.dumps((function, shared)))
            try:
                yield from self._each(work, iter(items))
            except BrokenProcessPool as error:
                raise InputError(
                    "a worker process ended without a word, probably for want of memory; "
                    "run again with fewer: workers=1 (what is done is kept)"
                ) from error

    def _each(self, work: Path, items: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        under_way = {}

        def submit(count: int) -> None:
            for item in islice(items, count):
                under_way[self._pool.submit(_call, work, item)] = item

        with deferred("finishing what is under way; Ctrl-C again stops at once") as deferral:
            submit(2 * self.count)  # one at work and one waiting for each
            while under_way:
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    yield under_way.pop(future), future.result()
                if deferral.came is None:
                    submit(len(done))
                else:
                    for future in [each for each in under_way if each.cancel()]:
                        del under_way[future]


def _begin(core_of_next: Any) -> None:
    """In a new worker: hold it to its core, leave Ctrl-C to the parent, and end with the parent."""
    import torch

    torch.set_num_threads(1)
    if sys.platform == "linux":
        core = core_of_next.get()
        for thread in os.listdir("/proc/self/task"):  # those of BLAS, too; later ones inherit it
            os.sched_setaffinity(int(thread), {core})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent_process().pid)


@lru_cache(maxsize=1)
def _work(path: Path) -> tuple[Callable[..., Any], tuple]:
    return pickle.loads(path.read_bytes())


def _call(path: Path, item: Any) -> Any:
    function, shared = _work(path)
    return function(*shared, item)
