"""The commands of the README and the how-tos run from a wheel, on small scans with the names in them.

Registering, verifying, locating and mapping take the core alone, and so do their pictures and pages.
"""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from pcreg.geometry.se3 import inverse, se3, transform
from pcreg.io.cloud import write_ply
from tests.datasets.street import street_pose, street_scan
from tests.processes import in_core, run
from tests.test_docs import CHECKOUT, SIZE

PAGES = [
    CHECKOUT / "README.md",
    *(CHECKOUT / "docs" / f"{name}.md" for name in ("index", "register", "maps", "windows_macos")),
]
OWN_DATA = CHECKOUT / "docs" / "own_data.md"
VERBS = ("demo", "register", "verify", "map", "locate")  # data sets and trainings but OWN_DATA's take days
METRES_PER_UNIT = 0.4  # of photos.ply


def commands() -> list[str]:
    """Commands of the pages; those that differ only in --out are listed once."""
    # In an indented block, or in a line of code
    command = re.compile(
        rf"(?:^    (?:\.venv/bin/)?|`)pcreg ((?:{'|'.join(VERBS)})\b ?[^`\n]*)", re.MULTILINE
    )
    found = [
        shlex.join(shlex.split(each, comments=True))
        for page in PAGES
        for each in command.findall(page.read_text())
    ]
    complete = [each for each in found if each == "demo" or " " in each]
    runnable = [each for each in complete if "--help" not in each and "--cluster" not in each]
    return sorted({re.sub(r" --out \w+", "", each): each for each in runnable}.values())


@pytest.fixture(scope="module")
def scans(tmp_path_factory, room) -> Path:
    """Scans of one room with z up, and the other files that the commands name."""
    folder = tmp_path_factory.mktemp("scans")
    source = SIZE * transform(room.T_world_source, room.source[::2])
    target = SIZE * transform(room.T_world_target, room.target[::2])
    moved = se3(np.eye(3), np.array([0.5, -0.3, 0.1]))
    for name in ("target", "scan_2", "scans/1", "demo/target", "new_1"):
        (folder / name).parent.mkdir(exist_ok=True)
        write_ply(folder / f"{name}.ply", target)
    for name in ("source", "scan", "scan_1", "scans/2", "demo/source", "new_2"):
        write_ply(folder / f"{name}.ply", transform(moved, source))
    write_ply(folder / "photos.ply", target / METRES_PER_UNIT)
    write_ply(folder / "map.ply", np.concatenate([source, target]))
    np.savetxt(folder / "T.txt", inverse(moved))
    (folder / "pairs.csv").write_text("source.ply,target.ply\n")
    return folder


ALL_IN_ONE_PROCESS = """
import os
import sys
from importlib import import_module
from pcreg.cli.main import main
from pcreg.runtime.workers import executor_of
import_module(sys.argv[-2]).executor_of = lambda *_: executor_of(0)
for folder, words in eval(sys.argv[-1]):
    os.chdir(folder)
    assert main(words) == 0, words
"""


def test_commands_of_the_pages_register(scans, core, tmp_path):
    """Each command runs in a new folder; `map map ...` runs in that of the command before."""
    runs = []
    for number, command in enumerate(commands()):
        number -= command.startswith("map map ")
        folder = shutil.copytree(scans, tmp_path / str(number), dirs_exist_ok=True)
        runs.append((str(folder), shlex.split(command)))
    runs.append((str(folder), ["register", "source.ply", "target.ply", "--device", "auto"]))
    done = in_core(core, ALL_IN_ONE_PROCESS, "pcreg.mapping.mapping", str(runs), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    written = [path.name for path in tmp_path.rglob("*")]
    assert min(map(written.count, ("overview.png", "viewer.html"))) > 1


def test_every_verb_for_scans_is_in_them():
    assert {command.split()[0] for command in commands()} == set(VERBS)


def test_the_guide_to_own_data_runs_from_any_folder(environment, tmp_path):
    """The replayed streets are left out: their simulation takes minutes."""
    for name, count in (("scans", 8), ("more_scans", 3)):
        poses = [street_pose(4 * n - 14) for n in range(count)]
        for n, pose in enumerate(poses):
            write_ply(tmp_path / name / f"{n}.ply", street_scan(pose, seed=n, rays=700))
        np.savetxt(tmp_path / name / "poses.txt", [pose[:3].ravel() for pose in poses])
    for n, name in enumerate(("source", "target")):
        scan = street_scan(street_pose(n), seed=n, rays=10_000)
        np.c_[scan, scan[:, 0]].astype("f4").tofile(tmp_path / f"{name}.bin")
    found = re.findall(r"^    pcreg (.*)", OWN_DATA.read_text().replace("\\\n", " "), re.MULTILINE)
    guide = [(".", shlex.split(each)) for each in found if "replay" not in each]
    assert [words[0] for _, words in guide] == ["evaluate", "train", "evaluate", "register"]
    words = "pcreg.evaluation.runner", str(guide)
    run(environment / "bin/python", "-c", ALL_IN_ONE_PROCESS, *words, cwd=tmp_path)
