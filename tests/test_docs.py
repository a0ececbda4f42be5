"""Links, files, names of Python, commands and settings in the pages exist, and their site builds."""

import importlib
import json
import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import pcreg
from pcreg.cli.config import CONFIGS, compose_config, flat
from pcreg.cli.register import parsed
from pcreg.geometry.se3 import rotation_error, se3
from pcreg.io.cloud import write_ply
from tests.processes import CHECKOUT, python

PAGES = [
    CHECKOUT / "README.md",
    *sorted(CHECKOUT.glob("docs/**/*.md")),
    *sorted(CHECKOUT.glob("weights/*.md")),
]
TOP = ("benchmarks", "configs", "datasets", "docs", "examples", "kernels", "pcreg", "tests", "weights")
SIZE = 0.6  # of the room: fewer voxels
GROUPS = [path.name for path in CONFIGS.iterdir() if path.is_dir() and path.name != "experiment"]
# Notes are dated records: they name the files and functions of their day.
NOTES = [page for page in PAGES if page.parent.name == "notes"]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
each_current_page = pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in NOTES], ids=lambda page: page.name
)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> list[str]:
    """The commands of the indented blocks, each in one line without its comment."""
    line = re.compile(
        r"^    (?:\.venv/bin/|torchrun .*-m )?pcreg ((?:evaluate|train|register) .*)$", re.MULTILINE
    )
    found = [each for page in PAGES for each in line.findall(page.read_text().replace("\\\n", " "))]
    return sorted({shlex.join(shlex.split(each, comments=True)) for each in found})


@each_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not link.startswith("http"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@each_current_page
def test_files_of_the_tree_are_there(page):
    """Paths in the text start in the checkout or in a folder of code."""
    roots = [CHECKOUT, *(CHECKOUT / top for top in TOP), CHECKOUT / "datasets" / "simulated"]
    for path in re.findall(r"(?<![\w/.<>:-])((?:[\w-]+/)+[\w-]+\.(?:py|yaml|html))\b", page.read_text()):
        assert any((root / path).is_file() for root in roots), path


@each_current_page
def test_names_of_the_package_can_be_imported(page):
    for name in set(re.findall(r"\bpcreg(?:\.\w+)+", page.read_text())):
        module, *attributes = name.split(".")
        found = importlib.import_module(module)
        for attribute in attributes:
            module = f"{module}.{attribute}"
            found = getattr(found, attribute, None) or importlib.import_module(module)


@pytest.mark.parametrize("command", commands())
def test_commands_have_options_and_settings_that_exist(command):
    verb, *words = shlex.split(command)
    if verb == "register":
        parsed(words)  # ends the process if it cannot be read
    else:
        compose_config(verb, words)


@each_page
def test_settings_in_the_text_are_keys(page):
    """Settings such as `data.voxel=0.3` or `batches.pool` occur in some choice of their group."""
    known = {f"{alias}.{key}" for alias in ("replay", "validation") for key in keys_of("data")}
    for group in GROUPS:
        known |= {f"{group}.{key}" for key in keys_of(group)}
    for name in ("train", "evaluate"):
        known |= set(flat(OmegaConf.load(CONFIGS / f"{name}.yaml")))
    sections = {key.split(".")[0] for key in known if "." in key}
    for code in re.findall(r"`([^`]+)`", re.sub("(?s)```.*?```", "", page.read_text())):
        for key in re.findall(r"(?<![\w./])([a-z]+\.[a-z_\d]+)(?![\w/(])", code):
            assert key.split(".")[0] not in sections or key in known, key


def keys_of(group: str) -> set[str]:
    return {key for path in (CONFIGS / group).glob("*.yaml") for key in flat(OmegaConf.load(path))}


def example(page: str) -> str:
    """The code under the heading "In Python"."""
    section = (CHECKOUT / page).read_text().partition("## In Python\n\n")[2].partition("\n## ")[0]
    return textwrap.dedent("\n".join(line for line in section.splitlines() if not line or line[:4] == "    "))


@pytest.fixture
def names(tmp_path, monkeypatch, room, in_process):
    """Variables for the example of registering; the README's example reads files of the demo."""
    monkeypatch.chdir(tmp_path)
    source, target = SIZE * room.source[::2], SIZE * room.target[::2]
    T = se3(room.T_target_source[:3, :3], SIZE * room.T_target_source[:3, 3])
    (tmp_path / "demo").mkdir()
    write_ply(tmp_path / "demo" / "source.ply", source)
    write_ply(tmp_path / "demo" / "target.ply", target)
    return {"source": source, "target": target, "T": T, "scans": [target, source]}


def test_the_example_of_the_readme_runs(names, room, capsys):
    """The result of the registrar, the last of the example, is right."""
    found = {}
    exec(example("README.md"), found)
    assert capsys.readouterr().out.startswith("<Registration: registered, confidence")
    assert rotation_error(found["result"].T_target_source, room.T_target_source) < 1
    assert found["moved"].shape == names["source"].shape


def test_the_example_of_registering_runs(names, room):
    """The registrar, which comes last, gives the motion that the call has saved."""
    exec(example("docs/register.md"), names)
    result, saved = names["result"], json.loads(Path("result.json").read_text())
    assert result.registered
    assert result.T_target_source.tolist() == saved["T_target_source"]
    assert rotation_error(result.T_target_source, room.T_target_source) < 1
    assert names["rows"].shape == (result.inliers, 2)
    assert names["moved"].shape == names["source"].shape


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the generator needs Python 3.11")
def test_the_site_builds_without_a_warning_and_describes_every_public_name(tmp_path):
    python("-m", "mkdocs", "build", "--strict", "-d", tmp_path / "site")
    page = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in set(pcreg.__all__) - {"__version__"}:
        assert f'.{name}" class="doc' in page, name
