"""Files that are either whole or absent."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pcreg.runtime.errors import OutputError
from pcreg.runtime.leftovers import clear_once, mark

# Raised by writing only; such errors name no file
WRITE_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it becomes `path` in one step.

    After an exception nothing is left behind and an older `path` is untouched; what a killed process left
    is removed when another one writes into the folder. The suffix is kept, since some writers choose their
    format by it, and the mode is that of the umask, whatever the writer set. Raises OutputError
    if the place cannot be written to; an OSError about any other file passes.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{mark()}{path.suffix}")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    clear_once(path.parent)
    try:
        with writing(path, temporary):
            temporary.unlink(missing_ok=True)
            temporary.touch()
            mode = temporary.stat().st_mode
            yield temporary
            temporary.chmod(mode)
        with writing(path):
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


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


def check_folder(folder: Path) -> None:
    """Raise OutputError unless files can be written into the folder, by trying; nothing is left behind."""
    made: list[Path] = []
    try:
        made += [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written to ({error.strerror}); name another folder"
        ) from error
    finally:
        for each in made:
            with suppress(OSError):
                each.rmdir()
