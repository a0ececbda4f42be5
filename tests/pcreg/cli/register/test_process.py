"""register.py as a process: statuses, streams, names of files, and what it imports."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.pcreg.cli.register.commands import FAST, SCRIPT, run
from tests.processes import python


def test_as_a_command_bad_input_is_one_sentence(scans, tmp_path):
    done = run(scans[0], tmp_path / "missing.ply", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path / 'missing.ply'}: no such file; check the path\n"
    assert not (tmp_path / "out").exists()


def test_what_a_run_does_not_need_is_not_imported(scans, tmp_path):
    """With FPFH, PyTorch and matplotlib take longer to import than a pair takes to register."""
    arguments = ["register", *map(str, scans), *FAST, "--descriptor", "fpfh", "--out", str(tmp_path)]
    program = (
        f"import sys; from pcreg.cli.main import main; status = main({arguments}); "
        "print(status, sorted({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    assert python("-c", program).splitlines()[-1] == "0 []"


def test_a_reader_that_leaves_after_the_first_line_loses_no_file(scans, tmp_path):
    words = [sys.executable, SCRIPT, *scans, *FAST, "--descriptor", "fpfh", "--out", tmp_path]
    line = f"{shlex.join(map(str, words))} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aligned.ply", "overview.png", "result.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
def test_names_that_are_not_utf_8(room, scans, tmp_path):
    """Read, printed, drawn and written as they are."""
    files = [os.fsencode(tmp_path) + name for name in (b"/caf\xe9.npy", b"/\xff\xfe.ply")]
    for file, scan in zip(files, scans, strict=True):
        os.link(scan, file)
    options = [*FAST, "--descriptor", "fpfh", "--html", "--out", tmp_path / "out"]
    done = subprocess.run([sys.executable, SCRIPT, *files, *options], capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert files[0] + b": %s points" % f"{len(room.source):,}".encode() in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [os.fsencode(result[side]) for side in ("source", "target")] == files
    assert files[1] in (tmp_path / "out" / "viewer.html").read_bytes()
