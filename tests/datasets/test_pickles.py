import os
import pickle

import numpy as np
import pytest
import torch

from pcreg.datasets.pickles import load_pickle, load_pth
from pcreg.runtime.errors import InputError

POINTS = np.arange(12.0).reshape(4, 3)


class Command:
    """Unpickled without restriction, this makes the file it names."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def save(value, path, zipped=True):
    torch.save(value, path, _use_new_zipfile_serialization=zipped)
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_plain_containers_come_back(tmp_path, protocol):
    lists = {
        "rot": [np.eye(3)],
        "overlap": [np.float64(0.25), 1, None],
        "src": ("a", b"b"),
        "set": {1, 2},
        "names": np.array(["x", "yy"]),
    }
    path = tmp_path / "lists.pkl"
    path.write_bytes(pickle.dumps(lists, protocol))
    loaded = load_pickle(path)
    np.testing.assert_array_equal(loaded.pop("rot")[0], lists.pop("rot")[0])
    np.testing.assert_array_equal(loaded.pop("names"), lists.pop("names"))
    assert loaded == lists


@pytest.mark.parametrize("core", ["numpy.core", "numpy._core"])
def test_arrays_of_numpy_1_and_2_come_back(tmp_path, core):
    written = pickle.dumps(POINTS, protocol=2)
    ours = np.zeros(1).__reduce__()[0].__module__.removesuffix(".multiarray")
    (tmp_path / "a.pkl").write_bytes(written.replace(f"c{ours}.".encode(), f"c{core}.".encode()))
    np.testing.assert_array_equal(load_pickle(tmp_path / "a.pkl"), POINTS)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_that_runs_a_command_is_refused_by_name(tmp_path, protocol):
    made = tmp_path / "made"
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps({"rot": Command(made)}, protocol))
    with pytest.raises(InputError, match=r"evil.pkl: refused, it asks for (posix|nt).system"):
        load_pickle(tmp_path / "evil.pkl")
    assert not made.exists()


def test_builtins_that_are_no_containers_are_refused(tmp_path):
    (tmp_path / "eval.pkl").write_bytes(b"cbuiltins\neval\n(S'1'\ntR.")
    with pytest.raises(InputError, match=r"builtins.eval"):
        load_pickle(tmp_path / "eval.pkl")


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({"rot": POINTS})[:-40]])
def test_damaged_pickle_is_bad_input(tmp_path, content):
    (tmp_path / "a.pkl").write_bytes(content)
    with pytest.raises(InputError, match=r"a.pkl: cannot be read"):
        load_pickle(tmp_path / "a.pkl")


@pytest.mark.parametrize("load", [load_pickle, load_pth])
def test_missing_file_is_bad_input(tmp_path, load):
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none")


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("points", [POINTS, POINTS.astype(np.float32), torch.from_numpy(POINTS).float()])
def test_pth_holds_an_array_or_a_tensor_in_either_format(tmp_path, points, zipped):
    loaded = load_pth(save(points, tmp_path / "a.pth", zipped))
    assert isinstance(loaded, np.ndarray)
    assert loaded.dtype == np.asarray(points).dtype
    np.testing.assert_array_equal(loaded, points)


@pytest.mark.parametrize("zipped", [True, False])
def test_pth_that_runs_a_command_is_refused_by_name(tmp_path, zipped):
    made = tmp_path / "made"
    save([POINTS, Command(made)], tmp_path / "evil.pth", zipped)
    with pytest.raises(InputError, match=r"evil.pth: refused, it asks for (posix|nt).system"):
        load_pth(tmp_path / "evil.pth")
    assert not made.exists()


def test_loading_admits_numpy_for_that_load_only(tmp_path):
    before = set(torch.serialization.get_safe_globals())
    load_pth(save(POINTS, tmp_path / "a.pth"))
    assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [0, 60, 400])
def test_truncated_pth_is_bad_input(tmp_path, zipped, kept):
    path = save(POINTS, tmp_path / "a.pth", zipped)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"a.pth: cannot be read .* download it again$"):
        load_pth(path)


def test_pth_of_something_else_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="holds a dict; save the points alone"):
        load_pth(save({"pcd": POINTS}, tmp_path / "a.pth"))
