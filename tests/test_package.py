"""The package: the folder from which it is imported, and its exports."""

import subprocess
import sys
from pathlib import Path

import pytest

import pcreg
from tests.processes import CHECKOUT, python


def test_what_is_imported_is_this_checkout():
    """Tests must not use an editable install of another checkout; mend with `pip install -e .`."""
    assert Path(pcreg.__file__).is_relative_to(CHECKOUT)


IMPORT = """
import sys, time
start = time.process_time()
import pcreg
seconds = time.process_time() - start
assert not {"torch", "open3d", "matplotlib"} & set(sys.modules), sorted(sys.modules)
assert all(hasattr(pcreg, name) for name in pcreg.__all__) and "torch" not in sys.modules
print(seconds)
"""


def test_importing_it_is_quick_and_leaves_pytorch_and_open3d_alone():
    """The import takes 0.4 s."""
    assert float(python("-c", IMPORT)) < 3  # CPU seconds


def test_what_it_exports():
    assert set(pcreg.__all__) == {
        *("register", "register_all", "verify", "Registrar", "Registration", "Prior", "Map"),
        *("FCGF", "FPFH", "InputError", "__version__"),
    }
    assert dir(pcreg) == sorted(pcreg.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = pcreg.nothing


def test_a_script_without_its_dependencies_says_what_to_type():
    done = subprocess.run([sys.executable, "-S", CHECKOUT / "register.py"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: numpy is not installed; type: ")
    assert done.stderr.endswith(f"-m pip install -e {CHECKOUT}\n")
