"""Progress on stderr, as a bar or as the current step, and seconds by step.

Library code logs its steps at level INFO, and the progress of each at level DEBUG. Nothing is shown while the
logger `pcreg` is at level ERROR. Most registrations end before anything is shown: Rich is imported only then.
"""

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, TypeVar

DELAY_SECONDS = 2.0  # until steps are shown

log = logging.getLogger(__name__)

Item = TypeVar("Item")


def is_shown() -> bool:
    """True if progress is to be shown."""
    return log.isEnabledFor(logging.WARNING)


def progress(items: Iterable[Item], words: str, total: int, *, transient: bool = False) -> Iterator[Item]:
    """Yield the items under a bar on stderr for `total` of them; a `transient` bar is removed at the end."""
    if total == 0:
        return
    with bar(words, transient=transient) as shown:
        yield from shown.track(items, total=total)
        shown.update(shown.task_ids[0], total=shown.tasks[0].completed)  # `total` may be an upper bound


def bar(*words: str, transient: bool = False, disable: bool = False) -> Any:
    """Progress of Rich: a bar on stderr behind the first of the words, before further ones."""
    from rich import progress as rich
    from rich.console import Console

    done = rich.BarColumn(), rich.MofNCompleteColumn(), "after", rich.TimeElapsedColumn()
    columns = words[0], *done, "left", rich.TimeRemainingColumn(), *words[1:]
    console = Console(file=sys.stderr)
    return rich.Progress(*columns, console=console, transient=transient, disable=disable or not is_shown())


class Steps(logging.Handler):
    """Context manager that shows the last message that the library logged, on a terminal.

    The message appears after two seconds, in one line that is removed at the end.
    """

    def __init__(self, words: str) -> None:
        """Show these words until the first message."""
        super().__init__()
        self.words, self._logger, self._ended = words, logging.getLogger("pcreg"), threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.words = record.getMessage()

    def __enter__(self) -> None:
        self._level = self._logger.level
        if is_shown():
            self._logger.setLevel(logging.DEBUG)
        else:
            self._ended.set()
        self._logger.addHandler(self)
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        self._ended.set()
        self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(DELAY_SECONDS):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console, start = Console(file=sys.stderr), perf_counter() - DELAY_SECONDS
        if console.is_terminal:
            with Live(console=console, transient=True, redirect_stdout=False) as line:
                while not self._ended.wait(0.2):
                    line.update(Text(f"{self.words} after {perf_counter() - start:.0f} s"))


class Clock:
    """Seconds by step; a step that is done again adds up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, step: str) -> None:
        """Add the time since the clock was made, or since the last `lap` or `add`, to this step."""
        self.add({step: perf_counter() - self._last})

    def add(self, seconds: dict[str, float]) -> None:
        """Add the seconds by step that another clock measured up to now."""
        for step, value in seconds.items():
            self.seconds[step] = round(self.seconds.get(step, 0.0) + value, 4)
        self._last = perf_counter()
