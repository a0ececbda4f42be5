"""Small files that would fill the memory are refused soon, and sound ones that shrink far are read."""

import resource
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

from pcreg.io.cloud import read_cloud
from pcreg.io.formats.bounds import MAX_POINTS, MAX_UNCHECKED_BYTES, check_expansion
from pcreg.runtime.errors import InputError
from tests.pcreg.io.cloud_files import write, write_by_open3d
from tests.pcreg.io.formats.bombs import BOMBS
from tests.processes import python

ALLOWANCE = 2 * MAX_UNCHECKED_BYTES  # bytes by which the whole process may grow


def read_bombs(folder: Path) -> None:
    """Read each file, which has to be refused; run in a process of its own, whose memory is measured."""
    for suffix in (".laz", ".e57", ".npz", ".ply"):  # imports what it needs
        write(folder / f"sound{suffix}", np.eye(3))
        read_cloud(folder / f"sound{suffix}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in BOMBS:
        start, words = perf_counter(), ""
        try:
            read_cloud(folder / name)
        except InputError as error:
            words = str(error)
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        assert words.startswith(str(folder / name)), f"{name} was read"
        assert perf_counter() - start < 2, f"{name} took {perf_counter() - start:.1f} s"
        assert grown < ALLOWANCE, f"{name} took {grown} bytes"
        print(name)


def test_bombs_are_refused_soon_and_in_little_memory(tmp_path):
    assert len(BOMBS) >= 18
    for name, make in BOMBS.items():
        make(tmp_path / name)
        assert (tmp_path / name).stat().st_size < 200_000
    read = python("-c", f"from {__name__} import *; read_bombs(Path({str(tmp_path)!r}))")
    assert read.split() == list(BOMBS)


def test_no_size_of_file_unlocks_more_than_the_maximum(tmp_path):
    with (tmp_path / "large.laz").open("wb") as file:
        file.truncate(1 << 40)  # sparse
    check_expansion(tmp_path / "large.laz", MAX_POINTS)
    with pytest.raises(InputError, match="uncompressed"):
        check_expansion(tmp_path / "large.laz", MAX_POINTS + 1)


@pytest.fixture(scope="module")
def raster():
    """Heights in steps of a centimetre over a grid: 0.3 bytes a point in a .laz."""
    x, y = np.meshgrid(np.arange(500) * 0.1, np.arange(400) * 0.1)
    return np.round(np.stack([x, y, np.sin(x / 5) * np.cos(y / 7)], axis=-1).reshape(-1, 3), 2)


def test_a_laz_of_less_than_a_byte_per_point_is_read(raster, tmp_path):
    import laspy

    header = laspy.LasHeader(point_format=3, version="1.2")
    header.scales = np.full(3, 0.01)  # laspy's own
    las = laspy.LasData(header)
    las.xyz = raster
    las.write(str(tmp_path / "a.laz"))
    assert (tmp_path / "a.laz").stat().st_size < len(raster)
    np.testing.assert_allclose(read_cloud(tmp_path / "a.laz").points, raster, atol=1e-9)


def test_a_compressed_pcd_of_few_bytes_per_point_is_read(raster, tmp_path):
    step = np.round(raster)  # LZF takes three bytes for 264 at best
    write_by_open3d(tmp_path / "a.pcd", step, compressed=True)
    assert (tmp_path / "a.pcd").stat().st_size < 2.6 * len(raster)
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.pcd").points, step)
