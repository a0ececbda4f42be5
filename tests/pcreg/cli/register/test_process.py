"""Registering in a process: what it imports, and names of files."""

import json
import os
import subprocess
import sys

import pytest

from tests.pcreg.cli.register.commands import FAST
from tests.processes import CHECKOUT, python


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_what_a_run_on_the_cpu_does_not_need_is_not_imported(scans, tmp_path, descriptor):
    """PyTorch and matplotlib take longer to import than a pair takes to register."""
    arguments = ["register", *map(str, scans), *FAST, "--descriptor", descriptor, "--out", str(tmp_path)]
    program = (
        f"import sys; from pcreg.cli.main import main; status = main({arguments}); "
        "print(status, sorted({'hydra', 'matplotlib', 'torch'} & set(sys.modules)))"
    )
    assert python("-c", program).splitlines()[-1] == "0 []"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
def test_names_that_are_not_utf_8(room, scans, tmp_path):
    """Such names are read, printed, drawn and written unchanged."""
    files = [os.fsencode(tmp_path) + name for name in (b"/caf\xe9.npy", b"/\xff\xfe.ply")]
    for file, scan in zip(files, scans, strict=True):
        os.link(scan, file)
    options = [*FAST, "--descriptor", "fpfh", "--html", "--out", tmp_path / "out"]
    command = [sys.executable, CHECKOUT / "register.py", *files, *options]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, b"")
    assert files[0] + b": %s points" % f"{len(room.source):,}".encode() in done.stdout
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [os.fsencode(result[side]) for side in ("source", "target")] == files
    assert files[1] in (tmp_path / "out" / "viewer.html").read_bytes()
