"""Work shared among the cores; no answer depends on how many there are."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def cores() -> int:
    """How many cores this process may use; a worker process of a batch is held to one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(do: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """What `do` makes of each item, in their order; it pays where NumPy or SciPy does most of the work."""
    items = list(items)
    if min(len(items), cores()) < 2:
        return [do(item) for item in items]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(do, items))
