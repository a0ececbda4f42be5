import errno
import os
from pathlib import Path

import pytest

from pcreg.errors import OutputError
from pcreg.files import replacing


def test_on_success_the_file_is_there_at_once(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with replacing(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert [each.name for each in path.parent.iterdir()] == ["a.txt"]
    assert path.read_text() == "whole"


def write_half(path: Path, error: OSError) -> None:
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_a_full_disk_is_an_output_error_and_the_old_file_stays(tmp_path, number):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(OutputError, match=r"a\.txt: cannot be written"):
        write_half(path, OSError(number, os.strerror(number)))  # as a write raises it, without a name
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"a\.txt"), replacing(tmp_path / "file" / "a.txt"):
        pass


def test_a_place_that_is_taken_by_a_folder(tmp_path):
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(OutputError, match=r"a\.txt"), replacing(tmp_path / "a.txt") as temporary:
        temporary.touch()
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_about_another_file_is_not_called_one_of_writing(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"), replacing(tmp_path / "a.txt"):
        (tmp_path / "missing").read_text()
    assert list(tmp_path.iterdir()) == []
