"""Files of scans that are registered in batches, and a registrar of single pairs."""

import pytest

from pcreg.io.cloud import write_ply
from pcreg.registration.registrar import Registrar


@pytest.fixture(scope="session")
def registrar() -> Registrar:
    """A registrar with a voxel size so coarse that a registration takes less than a second."""
    return Registrar(voxel=0.1)


@pytest.fixture
def scans(room, tmp_path):
    """A folder with two scans of a room, one more file that is damaged, and a list of pairs."""
    folder = tmp_path / "scans"
    write_ply(folder / "a.ply", room.target[::2])
    write_ply(folder / "b.ply", room.source[::2])
    (folder / "c.ply").write_bytes((folder / "b.ply").read_bytes()[:-9])
    (folder / "pairs.csv").write_text("source, target\nb.ply, a.ply\n\na.ply, a.ply\nc.ply,a.ply\n")
    return folder


@pytest.fixture
def lists(scans, room):
    """Pairs of several scales, among them one that is refused and one whose first cloud is mirrored."""
    write_ply(scans / "sparse.ply", room.source[::9])
    write_ply(scans / "mirrored.ply", room.source[::4] * [-1, 1, 1])
    write_ply(scans / "small.ply", room.source[::2] / 20)
    names = [("b", "a"), ("sparse", "a"), ("mirrored", "a"), ("small", "b"), ("c", "a")]
    return [tuple(str(scans / f"{name}.ply") for name in pair) for pair in names]
