"""Ctrl-C and SIGTERM, by which schedulers stop a process: it ends in order, and within seconds."""

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STATUS = 128 + signal.SIGTERM  # as a shell reports it
GRACE_SECONDS = 8.0  # to end in order; schedulers commonly kill after ten or more

log = logging.getLogger(__name__)

DEFAULT_HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@contextmanager
def termination() -> Iterator[None]:
    """Within, SIGTERM raises SystemExit(143), as Ctrl-C raises KeyboardInterrupt.

    If the process has not ended GRACE_SECONDS later, because it computes in C or waits for its threads, it is
    ended wherever it is. For the main thread of a program; in another thread nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone may handle signals
        yield
        return
    # Python handles a signal when C code returns. The number of the signal comes through here at once.
    heard, told = socket.socketpair()
    told.setblocking(False)
    threading.Thread(target=_end_after_grace, args=(heard,), daemon=True).start()
    previous_wakeup = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    previous = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        signal.set_wakeup_fd(previous_wakeup)
        told.close()


class Deferral:
    """The signals that came while they had to wait, of which there is one or none."""

    def __init__(self) -> None:
        self.came: int | None = None
        self._waits = True

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Within, a signal is raised at once, and one that came before is raised now."""
        self._waits = False
        try:
            self._raise()
            yield
        finally:
            self._waits = True

    def _note(self, number: int) -> None:
        self.came = number
        if not self._waits:
            self._raise()

    def _raise(self) -> None:
        if self.came is not None:
            raise _stopped_by(self.came)


@contextmanager
def deferred(words: str = "") -> Iterator[Deferral]:
    """Let what is within end before the first Ctrl-C or SIGTERM is raised; a second one does not wait.

    When a signal came, `words` are logged, if there are any. What is raised is KeyboardInterrupt or
    SystemExit(143), also in place of an error from within: it is likely that other processes were stopped,
    too. A signal that this process ignores stays ignored.
    """
    deferral = Deferral()
    if threading.current_thread() is not threading.main_thread():
        yield deferral
        return

    def note(number: int, _frame: FrameType | None) -> None:
        restore()
        if words:
            log.warning(words)
        deferral._note(number)

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    previous = {
        number: handler
        for number in DEFAULT_HANDLERS
        if (handler := signal.getsignal(number)) != signal.SIG_IGN
    }
    for number in previous:
        signal.signal(number, note)
    try:
        yield deferral
    except Exception:  # such as that of a process which the same signal stopped
        deferral._raise()
        raise
    finally:
        restore()
    deferral._raise()


def _stopped_by(number: int) -> BaseException:
    return SystemExit(STATUS) if number == signal.SIGTERM else KeyboardInterrupt()


def _stop(number: int, _frame: FrameType | None) -> None:
    raise _stopped_by(number)


def _end_after_grace(heard: socket.socket) -> None:
    with heard:
        while numbers := heard.recv(64):
            if signal.SIGTERM in numbers:
                time.sleep(GRACE_SECONDS)
                os._exit(STATUS)


def _reset_in_child() -> None:
    """In a forked process: restore the default handlers, and do not wake the parent."""
    for number, handler in DEFAULT_HANDLERS.items():
        if getattr(signal.getsignal(number), "__module__", "") == __name__:
            signal.signal(number, handler)
            signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_reset_in_child)
