import errno
import os
import subprocess
import sys

import pytest

from pcreg.cli import exit_status
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.extras import command_for
from tests.processes import started

ALL = command_for("all")


def raising(error: BaseException):
    def body() -> int:
        raise error

    return body


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InputError("a.ply: is empty; write it again"), 2, "error: a.ply: is empty; write it again\n"),
        (OutputError("a.ply: cannot be written"), 2, "error: a.ply: cannot be written\n"),
        (KeyboardInterrupt("it continues"), 130, "interrupted; it continues\n"),
        (MemoryError("Unable to allocate 3 TiB"), 2, "not enough memory (MemoryError: Unable to allocate"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x"), 2, "error: /tmp/x: cannot be written"),
        (ZeroDivisionError("by\nzero"), 70, "a fault of the program (ZeroDivisionError: by); please report"),
        (ModuleNotFoundError("No module", name="hydra"), 2, f"hydra is not installed; type: {ALL}"),
        (ModuleNotFoundError("No module", name="pcreg.nothing"), 70, "a fault of the program"),
    ],
)
def test_every_end_has_its_status_and_one_sentence(error, status, words, capsys):
    assert exit_status.status(raising(error)) == status
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.count("\n") == 1


def test_sigterm_is_said(capsys):
    with pytest.raises(SystemExit):
        exit_status.status(raising(SystemExit(143)))
    assert capsys.readouterr().err == "terminated\n"


PROGRAM = """
import sys
from pcreg.cli import exit_status as command
def main():
    for number in range(20000):
        print(number, flush=number == 0)
    print("caf\\udce9 caf\\xe9", file=sys.stderr)
    open(sys.argv[1], "w").close()
    return 1
sys.exit(command.status(main))
"""


def test_a_reader_that_has_left_does_not_stop_a_command(tmp_path):
    done = tmp_path / "done"
    process = started("-c", PROGRAM, done, stderr=subprocess.PIPE, text=False)
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.stderr.read() == b"caf\xe9 caf\xc3\xa9\n"
    assert process.wait(timeout=60) == 1
    assert done.exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_stream_is_status_2_and_one_sentence(tmp_path):
    line = f"{sys.executable} -c '{PROGRAM}' {tmp_path / 'done'} > /dev/full"
    done = subprocess.run(["sh", "-c", line], timeout=60, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "done").exists()) == (2, False)
    assert done.stderr == (
        "error: the standard output or error: cannot be written (No space left on device); make room\n"
    )


def test_a_stream_that_was_never_open_is_none_to_write_to(tmp_path):
    line = f"{sys.executable} -c '{PROGRAM}' {tmp_path / 'done'} >&- 2>&-"
    assert subprocess.run(["sh", "-c", line], timeout=60).returncode == 1
    assert (tmp_path / "done").exists()
