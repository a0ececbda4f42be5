"""A few trials of each kind, and what trials found once; `make fuzz` makes them for five minutes."""

import numpy as np
import pytest

from pcreg.geometry.voxel_size import Sample
from pcreg.io.cloud import read_cloud
from pcreg.runtime.errors import InputError
from tests.fuzz.trials import run
from tests.pcreg.scenes import wavy_sheet


def test_a_few_trials_of_trouble():
    for kind, counts in run(seed=0, seconds=0).items():
        assert counts["refused"], kind
        assert kind == "interruptions" or counts["answered"], kind


@pytest.mark.parametrize("factor", [1e-310, 1e-50, 1e50, 1e300])
def test_an_extent_that_is_no_length(factor):
    with pytest.raises(InputError, match="cloud: extends over"):
        Sample.of(wavy_sheet(1000) * factor, "cloud")


def test_an_archive_named_npy(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        np.savez(file, points=np.eye(3))
    with pytest.raises(InputError, match=r"a\.npy"):
        read_cloud(tmp_path / "a.npy")


def test_a_signalling_nan_is_dropped_without_a_warning(tmp_path):
    rows = wavy_sheet(100).astype("<f4")
    rows.view("<u4")[3, 0] = 0x7F800001
    np.save(tmp_path / "a.npy", rows)
    assert read_cloud(tmp_path / "a.npy").dropped == 1
