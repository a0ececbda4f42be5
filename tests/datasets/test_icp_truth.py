"""Corrections by ICP: computed once, kept in files, and refused where something else made them."""

import json
import shutil

import numpy as np
import pytest

import pcreg.datasets.icp_truth
from pcreg.datasets.kitti import Kitti
from pcreg.runtime.errors import InputError


def test_corrections_are_computed_once_and_shared_by_both_orders(tree, monkeypatch):
    root, _ = tree
    first = Kitti(root, 8, workers=0).pairs[0]
    assert [path.name for path in (root / "icp").iterdir()] == ["08_000000_000001.json"]
    monkeypatch.setattr(pcreg.datasets.icp_truth, "icp", None)  # a second run would fail
    np.testing.assert_array_equal(Kitti(root, 8).pairs[0].T_target_source, first.T_target_source)
    assert len(Kitti(root, 8, truth="icp-fcgf-compat").pairs) == 1


def test_corrections_are_computed_in_parallel_and_go_on_where_they_were_stopped(tree):
    root, _ = tree
    tree = root / "dataset"
    shutil.copytree(tree / "sequences/08", tree / "sequences/09")
    shutil.copy(tree / "poses/08.txt", tree / "poses/09.txt")
    whole = Kitti(root, [8, 9], workers=2).pairs
    first, second = sorted((root / "icp").iterdir())
    assert first.read_text() == second.read_text()  # of the same scans
    kept, written = second.stat().st_mtime_ns, first.read_text()
    first.unlink()
    again = Kitti(root, [8, 9], workers=1).pairs
    assert (first.read_text(), second.stat().st_mtime_ns) == (written, kept)
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one.T_target_source, other.T_target_source)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: json.dumps(json.loads(text) | {"correction": np.full((4, 4), np.nan).tolist()}),
        lambda text: json.dumps(json.loads(text) | {"correction": [0.0] * 16}),
    ],
)
def test_a_damaged_cache_is_replaced(tree, change):
    root, _ = tree
    cache = root / "elsewhere"
    expected = Kitti(root, 8, cache=cache, workers=0).pairs[0].T_target_source
    (path,) = cache.iterdir()
    whole = path.read_text()
    assert change(whole) != whole
    path.write_text(change(whole))
    replaced = Kitti(root, 8, cache=cache, workers=0).pairs[0].T_target_source
    np.testing.assert_allclose(replaced, expected, atol=1e-9)
    assert json.loads(path.read_text())["settings"] == json.loads(whole)["settings"]
    assert not (root / "icp").exists()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"iterations": 200', '"iterations": 100', "made by other code .*'iterations': 100"),
        ('"code": "', '"code": "0', "made by other code"),
        ('"open3d": "', '"open3d": "9.', "made by other code"),
        ('"start": [[0.', '"start": [[0.1', "made from other poses"),
    ],
)
def test_a_cache_of_other_code_or_poses_is_refused(tree, old, new, named):
    root, _ = tree
    _ = Kitti(root, 8, workers=0).pairs
    (path,) = (root / "icp").iterdir()
    changed = path.read_text().replace(old, new)
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(InputError, match=rf"json: {named}.*data.cache=FOLDER"):
        _ = Kitti(root, 8, workers=0).pairs
    assert path.read_text() == changed


def test_cache_that_cannot_be_written_is_bad_input(tree):
    root, _ = tree
    (root / "file").write_text("")
    with pytest.raises(InputError, match=r"data.cache=FOLDER"):
        _ = Kitti(root, 8, cache=root / "file", workers=0).pairs
