"""Errors of input and of writing, and helpers that raise or catch them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's type if there is none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def in_short(notes: Sequence[str]) -> str:
    """The first note, and the number of further ones."""
    return f"{notes[0]}{f', and {len(notes) - 1} further notes' if notes[1:] else ''}"


class InputError(ValueError):
    """A file, option or configuration key that cannot be used.

    The message is one sentence that names the file or key and the remedy. The commands print it
    and exit with status 2; library callers may catch it.
    """


class OutputError(InputError):
    """A file that cannot be written because of the disk or the folder."""


@contextmanager
def refusing(sentence: str, *errors: type[Exception]) -> Iterator[None]:
    """Raise InputError with this sentence in place of the given errors.

    `{error}` in the sentence stands for the first line of the error. InputError and MemoryError pass.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except errors as error:
        raise InputError(sentence.replace("{error}", first_line(error))) from error


def attempted(compute: Callable[[], Result]) -> tuple[Result | None, str]:
    """Call a function: its result and "", or None and the message of its InputError.

    OutputError passes, as the next file could not be written either.
    """
    try:
        return compute(), ""
    except OutputError:
        raise
    except InputError as error:
        return None, str(error)
