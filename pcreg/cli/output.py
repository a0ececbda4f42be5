"""Output of a command: printed lines, log messages, and the result as JSON."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TextIO

# Loggers, with all below them, whose messages at INFO are shown without --verbose.
MILESTONES = ("pcreg.datasets", "pcreg.mapping", "pcreg.registration.batch", "pcreg.training")


@contextmanager
def output(*, quiet: bool = False, verbose: bool = False, json: bool = False) -> Iterator[TextIO]:
    """Within, printed words go to stdout, logged ones to stderr; gives the stream of a result as JSON.

    `json` sends printed words to stderr, so that stdout holds the result alone. With `quiet` nothing is
    printed or logged but errors, and no progress is shown. `verbose` shows each step that the library logs.
    """
    logger, shown = logging.getLogger("pcreg"), _Shown(verbose)
    with ExitStack() as stack:
        stdout = sys.stdout
        if quiet:
            words = stack.enter_context(open(os.devnull, "w", encoding="utf-8", errors="surrogateescape"))
            stack.enter_context(redirect_stdout(words))
        elif json:
            stack.enter_context(redirect_stdout(sys.stderr))
        level = logger.level
        logger.setLevel(logging.ERROR if quiet else logging.INFO)
        logger.addHandler(shown)
        stack.callback(logger.setLevel, level)
        stack.callback(logger.removeHandler, shown)
        yield stdout


class _Shown(logging.Handler):
    """Writes messages to what stderr is at the time: a bar that is shown there makes room for them."""

    def __init__(self, verbose: bool) -> None:
        super().__init__(logging.INFO)
        if not verbose:
            self.addFilter(_is_milestone)

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)


def _is_milestone(record: logging.LogRecord) -> bool:
    return record.levelno > logging.INFO or record.name.startswith(MILESTONES)
