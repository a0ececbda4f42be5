"""Choice of a device, and settings that make results of PyTorch repeatable."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock

from pcreg.runtime.errors import InputError
from pcreg.runtime.extras import require


def choose_device(name: str) -> str:
    """Check and return the name of a device; `auto` becomes `cuda` if a GPU can be used, else `cpu`.

    Raises InputError unless it is `auto`, or `cpu`, `cuda` or `cuda:N` on this machine.
    """
    if name == "cpu" or (name == "auto" and find_spec("torch") is None):
        return "cpu"
    cuda = re.fullmatch("cuda(?::(0|[1-9][0-9]*))?", name)
    if cuda:
        require("gpu", f"device={name}")
    if name == "auto" or cuda:
        import torch  # takes a second

    if name == "auto":
        return "cuda" if torch.cuda.is_available() and find_spec("triton") else "cpu"
    if not cuda or int(cuda[1] or 0) >= torch.cuda.device_count():
        raise InputError(f"device={name}: not on this machine; use auto, cpu, cuda or cuda:N")
    if find_spec("triton") is None:
        raise InputError(f"device={name}: needs Triton, which PyTorch for this system lacks; use cpu")
    return name


@contextmanager
def deterministic() -> Iterator[None]:
    """Let PyTorch use deterministic algorithms within the block, where it has them."""
    import torch

    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


class _OneThread:
    """Limit PyTorch to one thread: its sums repeat, and forked processes do not hang."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, 1

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if self._inside == 0:
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        import torch

        with self._lock:
            self._inside -= 1
            torch.set_num_threads(self._before)


ONE_THREAD = _OneThread()
