import errno
import os
import signal
import time
from pathlib import Path

import pytest

from pcreg.runtime import files
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.files import locked, replacing
from tests.processes import started

KILLED = """
import os, signal, sys
from pathlib import Path
from pcreg.runtime.files import replacing

with replacing(Path(sys.argv[1]) / "last.pt") as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_is_whole_or_absent(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with replacing(path) as temporary:
        temporary.write_text("one")
        assert temporary.suffix == ".txt"
        assert not path.exists()
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text(str(1 // 0))
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]


def write(folder):
    """Write as a new process does, which has not cleaned the folder yet."""
    files.clear_once.cache_clear()
    with replacing(folder / "last.pt") as temporary:
        temporary.write_text("whole")


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path):
    others = [tmp_path / ".a.1234.pt", tmp_path / ".hidden", tmp_path / "a.unfinished.pt"]
    for path in others:
        path.touch()
    with started("-c", KILLED, tmp_path) as killed:
        assert killed.wait(timeout=60) < 0
    (half,) = set(tmp_path.iterdir()) - set(others)
    assert half.read_text() == "half"
    write(tmp_path)
    assert half.exists()  # another process may write it
    for path in (half, *others):
        os.utime(path, (time.time() - 90_000,) * 2)  # more than a day ago
    write(tmp_path)
    assert set(tmp_path.iterdir()) == {tmp_path / "last.pt", *others}


def write_half(path: Path, error: OSError) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_is_an_output_error_and_the_old_file_stays(tmp_path, number):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"a\.txt: cannot be written"):
        write_half(path, OSError(number, os.strerror(number)))  # as a write raises it, without a name
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", ["folder", "file/a.txt"])
def test_a_place_that_cannot_be_written_to_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=f"{name}: cannot"), replacing(tmp_path / name) as temporary:
        temporary.touch()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


HOLDER = """
import sys, time
from pcreg.runtime.files import locked

with locked(sys.argv[1], "wait"):
    print("locked", flush=True)
    time.sleep(300)
"""


def test_a_folder_is_of_one_process_until_it_ends(tmp_path):
    folder = tmp_path / "new" / "out"
    with started("-c", HOLDER, folder) as holder:
        try:
            assert holder.stdout.readline() == "locked\n"
            message = rf"{folder}: another run is writing there; give another"
            with pytest.raises(InputError, match=message), locked(folder, "give another"):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
        holder.wait()
    with pytest.raises(KeyboardInterrupt, match="same command continues"), locked(folder, ""):
        raise KeyboardInterrupt
    with locked(folder, "give another"):
        assert [path.name for path in folder.iterdir()] == [".lock"]
    assert not list(folder.iterdir())
