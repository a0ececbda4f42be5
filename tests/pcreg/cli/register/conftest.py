import numpy as np
import pytest

from pcreg.io.cloud import write_ply


@pytest.fixture(scope="package")
def scans(room, tmp_path_factory):
    """Source and target files; the source holds two rows that are no points."""
    folder = tmp_path_factory.mktemp("scans")
    np.save(folder / "source.npy", np.insert(room.source, [0, 100], [[np.nan, 0, 0], [0, np.inf, 0]], axis=0))
    write_ply(folder / "target.ply", room.target)
    return folder / "source.npy", folder / "target.ply"


@pytest.fixture(scope="package")
def other(tmp_path_factory):
    """A cloud that has nothing in common with the room."""
    path = tmp_path_factory.mktemp("other") / "other.xyz"
    np.savetxt(path, np.random.default_rng(0).uniform(-2, 2, (4000, 3)))
    return path
