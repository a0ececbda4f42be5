"""Atomic writing of files, removal of unfinished ones, and the lock of a folder."""

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

# Error numbers of writing alone; these errors name no file
WRITE_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}

# Raised by reading a damaged .npz, in which a flipped bit may mark a part as encrypted or compressed
DAMAGED_NPZ = OSError, ValueError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error
MARK = "unfinished"  # in the name of a file that is being written
MAX_AGE_SECONDS = 86_400.0  # no process, on any host, takes so long to write a file


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, with its suffix; on success, rename it.

    After an exception the temporary file is removed and an older `path` is unchanged. Raises OutputError if
    `path` cannot be written; an OSError about another file passes.
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
    """Write a text by `replacing`; names of files in it may hold bytes that are not UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


@contextmanager
def writing(path: Path, under_name: Path | None = None) -> Iterator[None]:
    """Raise OutputError, which names `path`, in place of an OSError.

    With `under_name`, the temporary file that is written, an OSError about another file passes.
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
    """Lock a folder for this process by a file `.lock` in it, and yield the folder.

    A missing folder is made. The lock ends with the process, and Ctrl-C says that the same command continues.
    Raises InputError, with the `remedy`, if another process has the lock or the folder cannot be written to.
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
    """Remove unfinished files that are older than a day from a folder, once per process."""
    with suppress(OSError):
        for path in folder.glob(f".*.{MARK}-*"):
            if time.time() - path.stat().st_mtime > MAX_AGE_SECONDS:
                path.unlink(missing_ok=True)
