"""`mypy --strict` on what pcreg exports, by the settings in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def test_public_modules_are_typed(wheel_tree):
    mypy = [sys.executable, "-m", "mypy", "--config-file", CHECKOUT / "pyproject.toml"]
    run = subprocess.run(mypy, cwd=wheel_tree, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
