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


@pytest.mark.parametrize("protocol", [0, 2, 5])
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


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("points", [POINTS, torch.from_numpy(POINTS).float()])
def test_pth_holds_an_array_or_a_tensor_in_either_format(tmp_path, points, zipped):
    loaded = load_pth(save(points, tmp_path / "a.pth", zipped))
    assert isinstance(loaded, np.ndarray)
    assert loaded.dtype == np.asarray(points).dtype
    np.testing.assert_array_equal(loaded, points)


@pytest.mark.parametrize("kind", ["pickle 0", "pickle 5", "pth", "zipped pth"])
def test_a_file_that_runs_a_command_is_refused_by_name(tmp_path, kind):
    made, path = tmp_path / "made", tmp_path / "evil"
    if kind.startswith("pickle"):
        path.write_bytes(pickle.dumps({"rot": Command(made)}, int(kind[-1])))
    else:
        save([POINTS, Command(made)], path, kind.startswith("zipped"))
    with pytest.raises(InputError, match=r"evil: refused, it asks for (posix|nt).system"):
        (load_pickle if kind.startswith("pickle") else load_pth)(path)
    assert not made.exists()


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps({"rot": POINTS})[:-40]])
def test_damaged_and_foreign_pickles_are_bad_input(tmp_path, content):
    path = tmp_path / "a.pkl"
    with pytest.raises(InputError, match="no such file"):
        load_pickle(path)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a.pkl: cannot be read"):
        load_pickle(path)
    path.write_bytes(b"cbuiltins\neval\n(S'1'\ntR.")
    with pytest.raises(InputError, match=r"builtins.eval"):
        load_pickle(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_damaged_and_foreign_pth_are_bad_input(tmp_path, zipped):
    path = tmp_path / "a.pth"
    with pytest.raises(InputError, match="no such file"):
        load_pth(path)
    whole = save(POINTS, path, zipped).read_bytes()
    for kept in (0, 60, 400):
        path.write_bytes(whole[:kept])
        with pytest.raises(InputError, match=r"a.pth: cannot be read .* download it again$"):
            load_pth(path)
    with pytest.raises(InputError, match="holds a dict; save the points alone"):
        load_pth(save({"pcd": POINTS}, path, zipped))
    with pytest.raises(InputError, match=r"cannot be read .*BFloat16"):
        load_pth(save(torch.from_numpy(POINTS).bfloat16(), path, zipped))
