"""Orderly end of a process within seconds after Ctrl-C, or SIGTERM of a scheduler."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from types import FrameType
from typing import Any

STATUS = 128 + signal.SIGTERM  # as a shell reports it
GRACE_SECONDS = 8.0  # to end in order; schedulers commonly kill after ten or more

log = logging.getLogger(__name__)


@contextmanager
def termination() -> Iterator[None]:
    """Let SIGTERM raise SystemExit(143) in the block, as Ctrl-C raises KeyboardInterrupt.

    A process that still runs GRACE_SECONDS later is ended then. Only the main thread handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


class deferred:
    """Delay the first Ctrl-C or SIGTERM to the end of the block; a second one acts at once.

    `words` are logged on Ctrl-C. The signal also replaces an exception of the block, as the same signal
    probably stopped other processes and so caused the exception. Ignored signals stay ignored. Within
    `termination` the process ends if the block lasts longer than GRACE_SECONDS after SIGTERM.
    """

    def __init__(self, words: str = "") -> None:
        self.words, self.came, self._waits = words, None, True
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "deferred":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if (handler := signal.getsignal(number)) != signal.SIG_IGN:
                    self._previous[number] = handler
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._restore()
        if kind is None or issubclass(kind, Exception):
            self.check()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Raise signals at once within this block, first of all one that came before it."""
        self._waits = False
        try:
            self.check()
            yield
        finally:
            self._waits = True

    def check(self) -> None:
        """Raise KeyboardInterrupt or SystemExit(143) if a signal came."""
        if self.came is not None:
            raise SystemExit(STATUS) if self.came == signal.SIGTERM else KeyboardInterrupt

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._previous.get(number) is _stop:
            _end_in_time()
        self._restore()
        if self.words and number == signal.SIGINT:
            log.warning(self.words)
        self.came = number
        if not self._waits:
            self.check()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def end_with_parent() -> None:
    """Start a thread that ends this process within seconds after its parent."""
    parent, number = parent_process(), os.getppid()

    def wait() -> None:
        while os.getppid() == number and (parent is None or parent.is_alive()):
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _stop(_number: int, _frame: FrameType | None) -> None:
    _end_in_time()
    raise SystemExit(STATUS)


def _end_in_time() -> None:
    timer = threading.Timer(GRACE_SECONDS, os._exit, [STATUS])
    timer.daemon = True
    timer.start()
