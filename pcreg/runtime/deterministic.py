"""PyTorch made to give the same results each time, to the last bit."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch


@contextmanager
def deterministic() -> Iterator[None]:
    """Have PyTorch add sums up in a fixed order, where it can: on a GPU, and with threads on a CPU."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)


class _OneThread:
    """PyTorch on the calling thread alone: the same sums on any cores, and no hang after a fork."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, 1

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            torch.set_num_threads(self._before)


ONE_THREAD = _OneThread()
