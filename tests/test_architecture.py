"""The contracts of import-linter in pyproject.toml: which room may import which."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def test_rooms_are_imported_one_way(wheel_tree):
    run = subprocess.run(
        [
            Path(sys.executable).with_name("lint-imports"),
            "--no-cache",
            "--config",
            CHECKOUT / "pyproject.toml",
        ],
        cwd=wheel_tree,
        env=os.environ | {"PYTHONPATH": str(wheel_tree)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
