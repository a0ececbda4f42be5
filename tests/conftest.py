import os
import shutil
import signal
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement

from pcreg.runtime.workers import executor_of
from tests.processes import CHECKOUT, FOREIGN, run
from tests.rooms import Room, stored_room

# Without a GPU the Triton kernels run in Triton's interpreter, on CPU tensors. Read when Triton is imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# The tests' tensors are small: threads that wait for one another at every operator cost more than they
# save, and on a busy machine a hundred times more.
torch.set_num_threads(1)

# A job in the background of a shell is started with Ctrl-C ignored, and so is what the tests start and stop.
signal.signal(signal.SIGINT, signal.default_int_handler)

REAL_DATA = CHECKOUT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real scans beside the checkout; not part of the repository."""
    if not REAL_DATA.is_dir():
        pytest.skip("no real scans beside the checkout (shared/data)")
    return REAL_DATA


@pytest.fixture(scope="session")
def room() -> Room:
    """Two scans of a simulated room that share about half of their surface."""
    return stored_room(0)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy: setuptools leaves a folder `build`, and takes old files from it."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(CHECKOUT / "pcreg", tree / "pcreg", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, tree)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel"]
    run(*pip, "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), ".", cwd=tree)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def core(wheel, tmp_path_factory) -> Path:
    """Folder as `pip install` of the wheel without extras fills it; required packages are links."""
    folder = tmp_path_factory.mktemp("core")
    zipfile.ZipFile(wheel).extractall(folder)
    (own,) = folder.glob("*.dist-info")
    waiting, done = [Requirement(line) for line in Distribution.at(own).requires], set()
    while waiting:
        needed = waiting.pop()
        if needed.name in done or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        done.add(needed.name)
        found = distribution(needed.name)
        waiting += map(Requirement, found.requires or [])
        for name in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            (folder / name).symlink_to(found.locate_file(name))
    return folder


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel; foreign packages come first, so that equal names overwrite them."""
    root = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", str(root), cwd=root)
    (packages,) = root.glob("lib/python*/site-packages")
    for name in FOREIGN:
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f'MARKER = "foreign {name}"\n')
    python = str(root / "bin/python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-index", "--no-deps", str(wheel), cwd=root)
    # A path line adds a folder, and processes no .pth file inside it: an editable install stays behind.
    heavy = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (packages / "heavy.pth").write_text("".join(f"{path}\n" for path in heavy))
    return root


@pytest.fixture
def three_threads() -> Iterator[None]:
    """Give PyTorch three threads."""
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work of worker processes, which take seconds to start, in the process of the test."""
    for module in ("evaluation.runner", "mapping.mapping", "registration.batch"):
        monkeypatch.setattr(f"pcreg.{module}.executor_of", lambda *_: executor_of(0))


LONG = (
    "tests/fuzz/",
    "tests/pcreg/cli/",
    "tests/test_docs",
    "tests/test_static.py",
    "tests/test_wheel.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with long tests first, so that at the end no core waits for another."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kitti", type=Path, help="KITTI odometry on this disk: the folder with poses/ and sequences/"
    )


@pytest.fixture(scope="session")
def kitti_root(request: pytest.FixtureRequest) -> Path:
    """The folder of the KITTI download that the command line names."""
    root = request.config.getoption("--kitti")
    if root is None:
        pytest.skip("no KITTI named: pytest --kitti=/data/kitti/dataset")
    return root
