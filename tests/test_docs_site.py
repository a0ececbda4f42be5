"""The site of docs/ builds without warnings, such as those of broken links."""

import sys

import pytest

import pcreg
from tests.processes import python

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the generator needs Python 3.11")


def test_the_site_builds_without_a_warning_and_describes_every_public_name(tmp_path):
    python("-m", "mkdocs", "build", "--strict", "-d", tmp_path / "site")
    page = (tmp_path / "site" / "api" / "index.html").read_text()
    for name in set(pcreg.__all__) - {"__version__"}:
        assert f'.{name}" class="doc' in page, name
