"""`register` as tests call it."""

import subprocess
import sys

from pcreg.cli.register import main
from tests.processes import CHECKOUT

SCRIPT = CHECKOUT / "register.py"
FAST = ["--voxel", "0.08"]


def refusal(capsys, *arguments) -> str:
    """The one sentence of a refused command."""
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert status == 2
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300)
