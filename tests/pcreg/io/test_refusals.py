"""Files that are no clouds: one sentence each, with the name of the file."""

import re
import sys

import numpy as np
import pytest

from pcreg.io import cloud
from pcreg.io.cloud import write_ply
from tests.pcreg.io.cloud_files import ALL, MARKED, POINTS, TEXT, refusal, write


@ALL
def test_missing_and_empty_file(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    assert "no such file" in refusal(path)
    path.touch()
    assert "empty" in refusal(path)


@ALL
def test_truncated_file(tmp_path, suffix):
    path = tmp_path / f"cloud{suffix}"
    write(path, np.random.default_rng(0).normal(size=(400, 3)))
    whole = path.read_bytes()
    cut = len(whole) * 2 // 3
    if suffix in (*TEXT, ".obj", ".off"):  # cut inside a row's first number
        cut = whole.rindex(b"\n", 0, cut) + 4
    path.write_bytes(whole[: cut - cut % 16 + 5 if suffix == ".bin" else cut])
    remedy = "or has another number of columns" if suffix == ".bin" else "or damaged: write it again"
    assert re.search(f"truncated,? {remedy}", refusal(path))


@pytest.mark.parametrize("suffix", [s for s in (*MARKED, ".las", ".laz") if s != ".bin"])
@pytest.mark.parametrize("content", [b"no point cloud\n", bytes(range(256)) * 4], ids=["text", "bytes"])
def test_unreadable_file(tmp_path, suffix, content):
    path = tmp_path / f"cloud{suffix}"
    path.write_bytes(content)
    refusal(path)


def test_a_damaged_file_is_refused_with_what_was_found(tmp_path):
    (tmp_path / "a.ply").write_bytes(b"no point cloud\n")
    found = "cannot be read as .ply (it does not begin with ply)"
    assert refusal(tmp_path / "a.ply") == f": {found}; it may be truncated or damaged: write it again"


@pytest.mark.parametrize("name", ["cloud.glb", "cloud", "cloud.doc", "cloud.ply.gz"])
def test_wrong_extension_names_the_valid_ones(tmp_path, name):
    (tmp_path / name).write_bytes(b"1 2 3\n")
    message = refusal(tmp_path / name)
    for suffix in (*MARKED, ".las", ".laz"):
        assert suffix in message


@pytest.mark.parametrize(("suffix", "package"), [(".las", "laspy"), (".laz", "lazrs"), (".e57", "pye57")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, suffix, package):
    write(tmp_path / f"a{suffix}", POINTS)
    monkeypatch.setitem(sys.modules, package, None)
    assert f"this format needs {package}; type: " in refusal(tmp_path / f"a{suffix}")


def test_want_of_memory_is_not_called_damage(tmp_path, monkeypatch):
    def read(path):
        raise MemoryError

    monkeypatch.setitem(cloud._READERS, ".ply", read)
    write_ply(tmp_path / "a.ply", POINTS)
    with pytest.raises(MemoryError):
        cloud.read_cloud(tmp_path / "a.ply")
