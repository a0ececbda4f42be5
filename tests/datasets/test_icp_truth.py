"""Corrections by ICP: computed once, kept in a file, and refused where something else made them."""

import shutil

import numpy as np
import pytest

import pcreg.datasets.kitti
from pcreg.datasets.kitti import Kitti
from pcreg.runtime.errors import InputError


def test_corrections_are_computed_once_and_shared_by_both_orders(tree, monkeypatch):
    root, _ = tree
    first = Kitti(root, 8, workers=0).pairs[0]
    assert [path.name for path in (root / "icp").iterdir()] == ["icp.jsonl"]
    monkeypatch.setattr(pcreg.datasets.kitti, "icp", None)  # a second run would fail
    np.testing.assert_array_equal(Kitti(root, 8).pairs[0].T_target_source, first.T_target_source)
    assert len(Kitti(root, 8, truth="icp-fcgf-compat").pairs) == 1


def test_corrections_are_computed_in_parallel_and_go_on_where_they_were_stopped(tree):
    root, _ = tree
    tree, cache = root / "dataset", root / "elsewhere"
    shutil.copytree(tree / "sequences/08", tree / "sequences/09")
    shutil.copy(tree / "poses/08.txt", tree / "poses/09.txt")
    whole = Kitti(root, [8, 9], cache=cache, workers=2).pairs
    lines = (cache / "icp.jsonl").read_text().splitlines(keepends=True)
    (cache / "icp.jsonl").write_text(lines[0] + lines[1][:100])
    again = Kitti(root, [8, 9], cache=cache, workers=0).pairs
    assert (cache / "icp.jsonl").read_text() == "".join(lines)
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one.T_target_source, other.T_target_source)
    assert not (root / "icp").exists()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"code": "', '"code": "0', r"holds another run \(code"),
        ('"open3d": "', '"open3d": "9.', r"holds another run \(open3d"),
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
    with pytest.raises(InputError, match=rf"jsonl: {named}.*data.cache=FOLDER"):
        _ = Kitti(root, 8, workers=0).pairs
    assert path.read_text() == changed


def test_cache_that_cannot_be_written_is_bad_input(tree):
    root, _ = tree
    (root / "file").write_text("")
    with pytest.raises(InputError, match=r"data.cache=FOLDER"):
        _ = Kitti(root, 8, cache=root / "file", workers=0).pairs
