"""Unfinished files of killed processes, recognised by their names and removed by the next process.

The name has the number of the process and where that is valid: on a host, and on Linux in a namespace, since
each container numbers its own processes.
"""

import hashlib
import os
import platform
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree

MAX_AGE_SECONDS = 86_400.0  # after which no process writes a file any more, on any host
MARK = re.compile(r"\.unfinished-([0-9a-f]{8})-(\d+)")


def mark() -> str:
    """Part of the name of what this process has not finished yet."""
    return f"unfinished-{_place()}-{os.getpid()}"


@cache
def clear_once(folder: Path) -> None:
    """Remove from `folder` what is marked by processes that have ended; done once in a process.

    A file of another host, or whose process number is in use again, goes when it is a day old.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            found, path = MARK.search(name), folder / name
            if found and _abandoned(path, *found.groups()):
                if path.is_dir():
                    rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def _abandoned(path: Path, place: str, number: str) -> bool:
    if place == _place() and not _runs(int(number)):
        return True
    return path.is_file() and time.time() - path.stat().st_mtime > MAX_AGE_SECONDS


def _runs(number: int) -> bool:
    try:
        os.kill(number, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True


@cache
def _place() -> str:
    """Where process numbers are those of this process, in eight digits."""
    numbered = Path("/proc/self/ns/pid")
    words = f"{platform.node()} {os.readlink(numbered) if numbered.is_symlink() else ''}"
    return hashlib.sha256(words.encode()).hexdigest()[:8]
