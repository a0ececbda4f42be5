"""The package as pyproject.toml lists it, against the tree."""

import sys
from pathlib import Path

import pytest

import pcreg.configs
import pcreg.datasets
import pcreg.kernels
import pcreg.weights

CHECKOUT = Path(__file__).resolve().parents[1]


def test_every_package_of_the_tree_is_listed():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib came with Python 3.11")
    import tomllib

    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join([name, *init.parent.relative_to(CHECKOUT / folder).parts])
        for name, folder in settings["package-dir"].items()
        for init in (CHECKOUT / folder).rglob("__init__.py")
    }
    assert set(settings["packages"]) == found


@pytest.mark.parametrize("package", [pcreg, pcreg.configs, pcreg.datasets, pcreg.kernels, pcreg.weights])
def test_what_is_imported_is_this_checkout(package):
    """Another checkout's editable install would lend its kernels: `pip install -e .` in this one mends
    that.
    """
    assert Path(package.__file__).is_relative_to(CHECKOUT)
