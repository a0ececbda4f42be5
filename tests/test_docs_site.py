"""The site of docs/ builds, and a warning, such as a link that leads nowhere, fails it."""

import subprocess
import sys
from pathlib import Path

import pytest

import pcreg

CHECKOUT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the generator needs Python 3.11")


def build(config: Path, site: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d", site]
    return subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)


def test_the_site_builds_without_a_warning_and_describes_every_public_name(tmp_path):
    done = build(CHECKOUT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in set(pcreg.__all__) - {"__version__"}:
        assert f'.{name}" class="doc' in page, name


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[nowhere](nowhere.md)\n")
    config = (CHECKOUT / "mkdocs.yml").read_text().partition("nav:")
    config = config[0] + "validation:" + config[2].partition("validation:")[2]
    (tmp_path / "mkdocs.yml").write_text(config)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
