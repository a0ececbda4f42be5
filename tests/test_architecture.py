"""The contracts of import-linter in pyproject.toml: which room may import which."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def test_rooms_are_imported_one_way(tmp_path):
    # import-linter follows folders, so it looks at the tree as a wheel lays it out.
    shutil.copytree(CHECKOUT / "pcreg", tmp_path / "pcreg")
    for folder in ("configs", "datasets", "kernels", "weights"):
        python_only = shutil.ignore_patterns("*.yaml", "*.safetensors", "*.md", "__pycache__")
        shutil.copytree(CHECKOUT / folder, tmp_path / "pcreg" / folder, ignore=python_only)
    run = subprocess.run(
        [
            Path(sys.executable).with_name("lint-imports"),
            "--no-cache",
            "--config",
            CHECKOUT / "pyproject.toml",
        ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
