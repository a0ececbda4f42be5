"""PyTorch held to the threads of its callers."""

from threading import Lock

import torch


class _OneThread:
    """While anybody is inside, PyTorch uses no threads but those of the callers.

    How many it uses is one number for the whole process, which several callers may enter at once. Then no
    sum depends on the number of cores, and a process that is forked later may use PyTorch, too: it would
    wait for ever for threads that were started before, since they are not forked with it.
    """

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
