"""A folder that one run at a time may write to."""

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pcreg.runtime.errors import InputError


@contextmanager
def locked(folder: str | Path, remedy: str) -> Iterator[None]:
    """Keep a folder, which is made if need be, to this process.

    The lock is that of a file `.lock` in it. The system gives it back when the process ends, however it
    ends, and processes that it forked do not have it. Raises InputError if another process has the folder,
    naming both and the `remedy`, or if the folder cannot be written to.
    """
    path = Path(folder) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _taken(path)
    except OSError as error:
        raise InputError(f"{folder}: cannot be locked ({error.strerror}); {remedy}") from error
    if file is None:
        raise InputError(f"{folder}: another run ({_holder(path)}) is writing there; {remedy}")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _taken(path: Path) -> int | None:
    """The open and locked file; None if another process has the lock."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(file)
            return None
        except OSError:
            os.close(file)
            raise
        # It may have been given back, and removed, between both.
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            os.truncate(file, 0)
            os.write(file, f"process {os.getpid()} on {platform.node()}".encode())
            return file
        os.close(file)


def _holder(path: Path) -> str:
    try:
        return path.read_text() or "just started"
    except OSError:
        return "just ended"
