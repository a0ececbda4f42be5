import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pcreg.runtime.errors import InputError
from pcreg.runtime.lock import locked

ROOT = Path(__file__).parents[3]

HOLDER = """
import os, sys, time
from pcreg.runtime.lock import locked

with locked(sys.argv[1], "wait"):
    if os.fork() == 0:
        time.sleep(300)
    print("locked", flush=True)
    time.sleep(300)
"""


def test_a_folder_is_of_one_process_until_it_ends(tmp_path):
    folder = tmp_path / "new" / "out"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as holder:
        try:
            assert holder.stdout.readline() == "locked\n"
            message = rf"{folder}: another run \(process {holder.pid} on .*\) is writing there; give another"
            with pytest.raises(InputError, match=message), locked(folder, "give another"):
                pass
            holder.kill()  # what it forked lives on
            holder.wait()
            with locked(folder, "give another"):
                assert [path.name for path in folder.iterdir()] == [".lock"]
            assert not list(folder.iterdir())
        finally:
            os.killpg(holder.pid, signal.SIGKILL)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match=r"file.out: cannot be locked \(.*\); give another"),
        locked(tmp_path / "file" / "out", "give another"),
    ):
        pass
