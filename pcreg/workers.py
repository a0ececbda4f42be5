"""Worker processes, each held to one core.

Numbers then do not depend on how many workers there are: every sum is added up by one thread, and
libraries that share random numbers among threads (Open3D's RANSAC) have one thread to give them to.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from typing import Any

from pcreg.errors import InputError


def cores() -> list[int]:
    """The cores that this process may use; where processes cannot be held to one, just their numbers."""
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def in_workers(
    function: Callable[..., Any], shared: tuple, items: Iterable[Any], workers: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield (item, function(*shared, item)) as calls are done, in any order.

    `workers` processes share the work, one per core by default; 0 works here, one call after the
    other. Function, arguments and results must be picklable; `shared` travels once per worker. An
    exception in a worker is raised here.

    Ctrl-C lets the calls under way end, and yields them, before it is raised; a second one is not so
    patient. Calls that were not begun are dropped.
    """
    items = iter(items)
    if workers == 0:
        for item in items:
            yield item, function(*shared, item)
        return
    context, allowed = get_context("spawn"), cores()
    workers = workers or len(allowed)
    core_of_next = context.Queue()
    for each in range(workers):
        core_of_next.put(allowed[each % len(allowed)])
    pool = ProcessPoolExecutor(workers, context, _begin, (core_of_next, function, shared))
    under_way = {}

    def submit(count: int) -> None:
        for item in islice(items, count):
            under_way[pool.submit(_call, item)] = item

    try:
        with _patience() as interrupted:
            submit(2 * workers)  # one at work and one waiting for each
            while under_way:
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    yield under_way.pop(future), future.result()
                if not interrupted.is_set():
                    submit(len(done))
                else:
                    for future in [each for each in under_way if each.cancel()]:
                        del under_way[future]
            if interrupted.is_set():
                raise KeyboardInterrupt
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process ended without a word, probably for want of memory; "
            "run again with fewer: workers=1 (what is done is kept)"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _patience() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the next one interrupts as usual."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # which alone may handle signals
        yield interrupted
        return

    def first(_number: int, _frame: Any) -> None:
        print("\nfinishing what is under way; Ctrl-C again stops at once", file=sys.stderr)
        interrupted.set()
        signal.signal(signal.SIGINT, usual)

    usual = signal.signal(signal.SIGINT, first)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, usual)


def _begin(core_of_next: Any, function: Callable[..., Any], shared: tuple) -> None:
    """In a new worker: hold it to its core, leave Ctrl-C to the parent, and end with the parent."""
    global _shared_call
    import torch

    if sys.platform == "linux":
        os.sched_setaffinity(0, {core_of_next.get()})
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared_call = partial(function, *shared)


_shared_call: Callable[[Any], Any]  # of a worker: what it does with every item


def _call(item: Any) -> Any:
    return _shared_call(item)


def _end_with_parent() -> None:
    parent_process().join()
    os._exit(1)
