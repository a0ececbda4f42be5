import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from pcreg.features.base import Description, Nodes
from pcreg.models import device_rows
from pcreg.models.device_rows import DeviceRows


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch):
    """Of other tests."""
    gc.collect()
    monkeypatch.setattr(device_rows, "_held", type(device_rows._held)())


def rows_of(values) -> DeviceRows:
    return DeviceRows(torch.tensor(values, dtype=torch.float32))


def test_rows_become_an_array_of_their_dtype_once():
    rows = rows_of([[1, 2], [3, 4], [5, 6]])
    assert (len(rows), rows.shape) == (3, (3, 2))
    assert np.asarray(rows).dtype == np.float32
    assert np.asarray(rows) is np.asarray(rows)
    assert np.asarray(rows).tolist() == [[1, 2], [3, 4], [5, 6]]
    copied = np.array(rows)
    copied[:] = 0
    assert np.asarray(rows)[0, 0] == 1
    assert np.concatenate([rows, rows], 1).shape == (3, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32])
def test_no_dtype_is_changed(dtype):
    assert torch.from_numpy(np.asarray(DeviceRows(torch.ones(2, 3, dtype=dtype)))).dtype == dtype


def test_a_description_is_read_as_arrays_and_keeps_the_rows_in_place():
    features, nodes = rows_of([[1, 2], [3, 4]]), rows_of([[1, 2, 3]])
    described = Description(np.zeros((2, 3)), features, nodes=Nodes(nodes, nodes, nodes))
    assert described.features_in_place is features
    assert type(described.features) is np.ndarray
    assert type(described.nodes.normals) is np.ndarray
    assert described.of_rows(np.array([1])).features.tolist() == [[3, 4]]
    with pytest.raises(TypeError):
        Description(np.zeros((2, 3)))  # features have no default


@pytest.mark.parametrize("copied", [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy])
def test_a_copy_by_value_has_arrays(copied):
    described = Description(np.zeros((2, 3)), rows_of([[1, 2], [3, 4]]))
    there = copied(described)
    assert type(there.features_in_place) is np.ndarray
    np.testing.assert_array_equal(there.features, described.features)


def test_the_oldest_make_room_for_the_latest(monkeypatch):
    monkeypatch.setattr(device_rows, "MAX_HELD_BYTES", 2 * 16)
    first, second, third = (rows_of([[n, n], [n, n]]) for n in range(3))
    assert first.tensor_on("cpu") is None
    assert np.asarray(first).tolist() == [[0, 0], [0, 0]]
    assert second.tensor_on("cpu").tolist() == [[1, 1], [1, 1]]
    assert third.tensor_on("cpu").tolist() == [[2, 2], [2, 2]]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)), np.zeros((2, 2)))


def test_forgotten_rows_take_no_room(monkeypatch):
    monkeypatch.setattr(device_rows, "MAX_HELD_BYTES", 2 * 16)
    kept = rows_of([[1, 1], [1, 1]])
    for _ in range(5):
        rows_of([[2, 2], [2, 2]])
        gc.collect()
    assert kept.tensor_on("cpu") is not None


def test_some_rows_of_a_tensor_take_the_room_of_all(monkeypatch):
    monkeypatch.setattr(device_rows, "MAX_HELD_BYTES", 100)
    some = DeviceRows(torch.zeros(100, 3)[:2])
    assert some.tensor_on("cpu") is None
    assert np.asarray(some).shape == (2, 3)


def test_threads_read_the_same_array():
    rows = DeviceRows(torch.rand(1000, 8))
    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(lambda _: np.asarray(rows), range(50))
    assert all(each is first for each in others)
