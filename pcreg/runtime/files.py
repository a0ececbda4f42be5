"""Whole files or none, the leftovers of killed processes, and the lock of a run's folder."""

import errno
import os
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from pcreg.runtime.errors import InputError, OutputError

# Raised by writing only; such errors name no file
WRITE_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}

# What reading a damaged .npz raises: a flipped bit may mark a part as encrypted or compressed
DAMAGED_NPZ = OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error
MARK = "unfinished"  # in the name of a file that is being written
MAX_AGE_SECONDS = 86_400.0  # after which no process writes a file any more, on any host


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name, of the same suffix, beside `path`; on success it becomes `path` in one step.

    After an exception nothing is left behind and an older `path` is untouched. Raises OutputError if the
    place cannot be written to; an OSError about any other file passes.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{MARK}-{os.urandom(8).hex()}{path.suffix}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    clear_once(path.parent)
    try:
        with writing(path, temporary):
            temporary.touch()
            mode = temporary.stat().st_mode
            yield temporary
            temporary.chmod(mode)  # some writers set their own
        with writing(path):
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text in one step, as `replacing`; file names in it keep bytes that are no UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


@contextmanager
def writing(path: Path, under_name: Path | None = None) -> Iterator[None]:
    """Raise OutputError, naming `path`, where it cannot be written.

    With `under_name`, that is the file being written, and an OSError about any other file passes.
    """
    try:
        yield
    except OSError as error:
        if under_name and error.errno not in WRITE_ERRORS and str(error.filename) != str(under_name):
            raise
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); make room or name another folder"
        ) from error


@contextmanager
def locked(folder: str | Path, remedy: str) -> Iterator[str | Path]:
    """Lock a folder, which is made if need be, for this process by a file `.lock` in it; yields the folder.

    The lock ends with the process, and Ctrl-C says that the run continues. Raises InputError, naming the
    `remedy`, if another process has the folder or it cannot be written to.
    """
    from filelock import FileLock, Timeout  # takes 20 ms

    path = Path(folder) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"{folder}: another run is writing there; {remedy}") from error
    except OSError as error:
        raise InputError(f"{folder}: cannot be locked ({error.strerror}); {remedy}") from error
    try:
        yield folder
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("the same command continues") from stop
    finally:
        with suppress(OSError):  # Windows removes no open file
            path.unlink()
        lock.release()


@cache
def clear_once(folder: Path) -> None:
    """Remove from `folder` what killed processes left there a day ago or before; done once in a process."""
    with suppress(OSError):
        for path in folder.glob(f".*.{MARK}-*"):
            if time.time() - path.stat().st_mtime > MAX_AGE_SECONDS:
                path.unlink(missing_ok=True)
