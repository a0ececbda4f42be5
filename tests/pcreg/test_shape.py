import numpy as np

from pcreg.shape import solid


def test_loners_are_told_from_surfaces():
    rng = np.random.default_rng(0)
    sheet = np.c_[rng.uniform(0, 2, (4000, 2)), np.zeros(4000)]
    loners = rng.uniform(1, 30, (100, 3))
    kept = solid(np.concatenate([loners, sheet]), 0.1, np.zeros(3))
    assert (kept[:, 2] != 0).sum() < 5
    assert 300 < (kept[:, 2] == 0).sum() < 600  # cells of the sheet


def test_a_crowd_in_one_cell_is_a_loner():
    crowd = np.random.default_rng(0).uniform(0, 0.05, (500, 3))
    assert len(solid(crowd, 1.0, np.zeros(3))) == 0
