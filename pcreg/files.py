"""Files that are either whole or absent."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pcreg.errors import InputError
from pcreg.leftovers import clear_once, mark


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it becomes `path` in one step.

    After an exception nothing is left behind and an older `path` is untouched; what a killed process left
    is removed when another one writes into the folder. The suffix is kept, since some writers choose their
    format by it, and the mode is what the umask asks for, whatever the writer made of it. Raises InputError
    if the place cannot be written to.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{mark()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_once(path.parent)
        temporary.unlink(missing_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); name another folder") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_folder(folder: Path) -> None:
    """Raise InputError unless files can be written into the folder, by trying; nothing is left behind."""
    made: list[Path] = []
    try:
        made += [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to ({error.strerror}); name another folder") from error
    finally:
        for each in made:
            with suppress(OSError):
                each.rmdir()
