"""Files from untrusted sources: nothing in them is run, nothing is written outside the folder asked for."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from pcreg.io.cloud import read_cloud
from pcreg.models.weights import load_weights
from pcreg.runtime.errors import InputError
from pcreg.training.checkpoint import load_checkpoint


class Trap:
    """Object that writes a file if an unguarded reader unpickles it."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path):
    yield Trap(tmp_path / "sprung")
    assert not (tmp_path / "sprung").exists()


def test_the_trap_works(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_arrays_of_objects(trap, tmp_path, name):
    rows = np.array([[trap] * 3] * 50, dtype=object)
    if name == "a.npy":
        np.save(tmp_path / name, rows, allow_pickle=True)
    else:
        np.savez(tmp_path / name, points=rows)
    with pytest.raises(InputError, match=name):
        read_cloud(tmp_path / name)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".ply", ".pcd", ".xyz", ".las", ".e57"])
def test_bare_pickles_under_another_name(trap, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pickle.dumps(trap))
    with pytest.raises(InputError):
        read_cloud(path)


@pytest.mark.parametrize(
    "save",
    [lambda value, path: torch.save(value, path), lambda value, path: path.write_bytes(pickle.dumps(value))],
)
@pytest.mark.parametrize("load", [load_checkpoint, load_weights])
def test_checkpoints_and_weights(trap, tmp_path, save, load):
    save({"network": trap}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"a\.pt"):
        load(tmp_path / "a.pt")


def test_an_archive_whose_names_lead_elsewhere_writes_nothing(tmp_path):
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "points.npy", np.eye(3))
    for name in ("../escaped.npy", "/escaped.npy"):
        with zipfile.ZipFile(tmp_path / "in" / "a.npz", "w") as archive:
            archive.write(tmp_path / "points.npy", name)
        before = sorted(tmp_path.rglob("*"))
        np.testing.assert_array_equal(read_cloud(tmp_path / "in" / "a.npz").points, np.eye(3))
        assert sorted(tmp_path.rglob("*")) == before
