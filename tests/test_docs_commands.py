"""The commands of the README and the how-tos run, on small scans under the names that they have there."""

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from pcreg.cli.main import main
from pcreg.geometry.se3 import inverse, se3, transform
from pcreg.io.cloud import write_ply
from tests.test_docs import CHECKOUT

PAGES = [
    CHECKOUT / "README.md",
    *(CHECKOUT / "docs" / f"{name}.md" for name in ("index", "register", "maps")),
]
# In an indented block, or in a line of code; data sets and trainings are for tests of their own
COMMAND = re.compile(
    r"(?:^    (?:\.venv/bin/)?|`)pcreg ((?:register|verify|map|locate) [^`\n]*)", re.MULTILINE
)
METRES_PER_UNIT = 0.4  # of photos.ply


def commands() -> list[str]:
    """Each once, wherever it writes to."""
    found = [
        shlex.join(shlex.split(each, comments=True))
        for page in PAGES
        for each in COMMAND.findall(page.read_text())
    ]
    found = [each for each in found if "--help" not in each and "--cluster" not in each]
    return sorted({re.sub(r" --out \w+", "", each): each for each in found}.values())


@pytest.fixture(scope="module")
def scans(tmp_path_factory, room) -> Path:
    """Scans of one room with z up, and what else the commands name."""
    folder = tmp_path_factory.mktemp("scans")
    source, target = (
        transform(T, points)
        for T, points in ((room.T_world_source, room.source), (room.T_world_target, room.target))
    )
    moved = se3(np.eye(3), np.array([0.5, -0.3, 0.1]))
    for name in ("target", "scan_2", "scans/1", "demo/target"):
        (folder / name).parent.mkdir(exist_ok=True)
        write_ply(folder / f"{name}.ply", target)
    for name in ("source", "scan", "scan_1", "scans/2", "demo/source"):
        write_ply(folder / f"{name}.ply", transform(moved, source))
    write_ply(folder / "photos.ply", target / METRES_PER_UNIT)
    write_ply(folder / "map.ply", np.concatenate([source, target]))
    np.savetxt(folder / "T.txt", inverse(moved))
    (folder / "pairs.csv").write_text("source.ply,target.ply\n")
    return folder


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_pages_register(command, scans, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(shutil.copytree(scans, tmp_path / "scans"))
    assert main(shlex.split(command)) == 0, capsys.readouterr().err


def test_every_verb_for_scans_is_in_them():
    assert {command.split()[0] for command in commands()} == {"register", "verify", "map", "locate"}
