"""Output, exit status and error message of every command.

0, 1  the result of the command
2     bad input, or a file that cannot be written
70    a fault of the program (EX_SOFTWARE of sysexits.h)
130   Ctrl-C
143   SIGTERM, as a shell reports it
"""

import io
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.extras import PACKAGES, command_for
from pcreg.runtime.files import WRITE_ERRORS
from pcreg.runtime.termination import STATUS as TERMINATED
from pcreg.runtime.termination import termination

# Loggers whose INFO messages, and those of their children, are shown without --verbose
MILESTONES = ("pcreg.datasets", "pcreg.mapping", "pcreg.registration.batch", "pcreg.training")


def status(
    command: Callable[[], int | None], *, with_traceback: bool = False, own: Path | None = None
) -> int:
    """Run the command and return its exit status, 0 for None.

    `with_traceback` prints the traceback of a fault. An exception from the user's modules in the folder `own`
    is bad input and not a fault of the program.
    """
    if sys.stdout is sys.__stdout__:  # a test or a notebook replaces it
        sys.stdout, sys.stderr = tolerant(sys.stdout), tolerant(sys.stderr)
    try:
        with termination():
            with refusing("the working folder was removed; change to another", FileNotFoundError):
                os.getcwd()  # relative paths and worker processes need it
            done = command() or 0
            sys.stdout.flush()
        return done
    except InputError as error:
        return _refused(error)
    except KeyboardInterrupt as stop:
        print("; ".join(["interrupted", *map(str, stop.args)]), file=sys.stderr)
        return 130
    except SystemExit as stop:
        if stop.code == TERMINATED:
            print("terminated", file=sys.stderr)
        raise
    except MemoryError as error:
        remedy = "use fewer points, a larger voxel or fewer workers"
        return _refused(f"not enough memory ({_first_line(error)}); {remedy}")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("pcreg"):
            extra = "all" if any(error.name in names for names in PACKAGES.values()) else ""
            return _refused(f"{error.name} is not installed; type: {command_for(extra)}")
        if isinstance(error, OSError) and error.errno in WRITE_ERRORS:
            return _refused(f"{error.filename or 'a file'}: cannot be written ({error.strerror}); make room")
        if with_traceback:
            traceback.print_exc()
        if own and (places := _places(error, own)):
            return _refused(f"{places[-1]}: raised {_first_line(error)}; correct this module")
        more = "" if with_traceback else " and what it prints with --traceback"
        remedy = f"please report it to the maintainers with this command{more}"
        return _refused(f"a fault of the program ({_first_line(error)}); {remedy}", 70)


def tolerant(stream: Any) -> TextIO:
    """Make a stream accept any file name, and ignore that its reader has ended (`| head`)."""
    if stream is None:  # closed by whoever started the command
        return open(os.devnull, "w", encoding="utf-8", errors="surrogateescape")
    utf_8 = stream.encoding.lower().replace("-", "") == "utf8"
    stream.reconfigure(errors="surrogateescape" if utf_8 else "backslashreplace")
    if stream.isatty():  # a terminal's reader does not end, and Windows writes to terminals differently
        return stream
    raw = io.BufferedWriter(_Tolerant(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=stream.line_buffering)


class _Tolerant(io.FileIO):
    failed = False  # after an error the rest of the buffer is dropped

    def write(self, data: bytes) -> int:
        try:
            return len(data) if self.failed else super().write(data)
        except BrokenPipeError:
            return len(data)
        except OSError as error:
            self.failed = True
            raise OSError(error.errno, error.strerror, "the standard output or error") from error


def _refused(sentence: object, status: int = 2) -> int:
    """Print the sentence; returns the exit status."""
    print(f"error: {sentence}", file=sys.stderr)
    return status


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _places(error: Exception, folder: Path) -> list[str]:
    """Lines in modules of the folder that the traceback names, that of a worker process included."""
    text = "".join(traceback.format_exception(error))
    lines = re.findall(rf'"({re.escape(str(folder.absolute()))}[\\/].*)", line (\d+)', text)
    return [f"{file}, line {number}" for file, number in lines]


@contextmanager
def output(*, quiet: bool = False, verbose: bool = False, json: bool = False) -> Iterator[TextIO]:
    """Print to stdout and log to stderr within this context; yields the stream for a result as JSON.

    With `json`, print goes to stderr, so that stdout holds the result alone. With `quiet`, only errors are
    shown, and no progress. `verbose` shows each step that the library logs.
    """
    logger, shown = logging.getLogger("pcreg"), _Shown(logging.INFO)
    if not verbose:
        shown.addFilter(lambda record: record.levelno > logging.INFO or record.name.startswith(MILESTONES))
    with ExitStack() as stack:
        stdout = sys.stdout
        if quiet:
            words = stack.enter_context(open(os.devnull, "w", encoding="utf-8", errors="surrogateescape"))
            stack.enter_context(redirect_stdout(words))
        elif json:
            stack.enter_context(redirect_stdout(sys.stderr))
        stack.callback(logger.setLevel, logger.level)
        stack.callback(logger.removeHandler, shown)
        logger.setLevel(logging.ERROR if quiet else logging.INFO)
        logger.addHandler(shown)
        yield stdout


class _Shown(logging.Handler):
    """Handler that prints to the current sys.stderr, which a progress bar may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr)
