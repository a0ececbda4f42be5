"""Static checks by the settings in pyproject.toml: import contracts, and types of what pcreg exports."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import CHECKOUT


@pytest.mark.parametrize("tool", ["lint-imports", "mypy"])
def test_a_static_check_finds_nothing(tool):
    command = [Path(sys.executable).with_name(tool)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
