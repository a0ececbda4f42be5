"""The wheel, in an environment that also has packages called `datasets` and `kernels`."""

import json
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pcreg.geometry.se3 import rotation_error, translation_error
from tests.pcreg.scenes import moved_sheet
from tests.processes import CHECKOUT, FOREIGN, in_core, run

MAX_WHEEL_BYTES, MAX_CORE_BYTES = 30e6, 400e6


@pytest.mark.parametrize(
    ("words", "purpose", "packages", "extra"),
    [
        ("evaluate", "pcreg evaluate", "hydra, matplotlib, omegaconf, pydantic, torch, yaml", "evaluate"),
        ("train", "pcreg train", "hydra, omegaconf, pydantic, tensorboard, torch, yaml", "train"),
        ("warmup", "pcreg warmup", "torch", "gpu"),
        ("register a.npy b.npy --device cuda", "device=cuda", "torch", "gpu"),
        ("register a.npy b.npy --descriptor fpfh", "descriptor fpfh", "open3d", "fpfh"),
        ("register a.laz b.npy", "a.laz: this format", "laspy, lazrs", "las"),
        ("register a.npy b.e57", "b.e57: this format", "pye57", "e57"),
    ],
)
def test_what_the_core_lacks_is_said_with_the_command(core, tmp_path, words, purpose, packages, extra):
    moved_sheet(tmp_path)
    for name in ("a.laz", "b.e57"):
        (tmp_path / name).write_bytes(b"content")
    code = "from pcreg.cli.main import main; sys.exit(main(sys.argv[2:]))"
    done = in_core(core, code, *words.split(), cwd=tmp_path)
    assert done.returncode == 2
    command = f"{sys.executable} -m pip install 'pcreg[{extra}]'"
    assert done.stderr == f"error: {purpose} needs {packages}; type: {command}\n"


def test_every_file_is_inside_under_one_name_and_the_core_is_small(wheel, core):
    """Weights, configuration, page template and py.typed are inside; pcreg is the only package."""
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    files = (Path(root) / name for root, _, names in os.walk(core, followlinks=True) for name in names)
    assert sum(file.stat().st_size for file in files) < MAX_CORE_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    files = [path for path in (CHECKOUT / "pcreg").rglob("*") if path.is_file()]
    expected = {path.relative_to(CHECKOUT) for path in files if "__pycache__" not in path.parts}
    assert {Path(name) for name in names if ".dist-info/" not in name} == expected


def test_it_registers_beside_foreign_packages_of_the_same_names(environment, room, tmp_path):
    np.save(tmp_path / "source.npy", room.source)
    np.save(tmp_path / "target.npy", room.target)
    code = """
import json, kernels, datasets, pcreg, pcreg.kernels, pcreg.datasets, pcreg.configs, pcreg.weights, sys
from pcreg.cli.main import main
assert main(["register", "source.npy", "target.npy", "--voxel", "0.08", "--quiet", "--no-picture"]) == 0
found = json.load(open("registration/result.json"))
ours = [each.__file__ for name, each in sys.modules.items() if name.partition(".")[0] == "pcreg"]
from importlib.metadata import version
assert pcreg.__version__ == version("pcreg")
print(json.dumps({"markers": [datasets.MARKER, kernels.MARKER], "ours": ours, **found}))
"""
    answer = json.loads(run(str(environment / "bin/python"), "-c", code, cwd=tmp_path))
    assert answer["markers"] == [f"foreign {name}" for name in FOREIGN]
    assert all(Path(file).is_relative_to(environment) for file in answer["ours"])
    assert answer["registered"]
    assert rotation_error(np.array(answer["T_target_source"]), room.T_target_source) < 2
    assert translation_error(np.array(answer["T_target_source"]), room.T_target_source) < 0.05
    assert "usage: pcreg VERB" in run(str(environment / "bin/pcreg"), "--help", cwd=tmp_path)
