import numpy as np

from pcreg.shape import solid


def test_loners_are_told_from_surfaces():
    rng = np.random.default_rng(0)
    sheet = np.c_[rng.uniform(0, 2, (4000, 2)), np.zeros(4000)]
    loners = rng.uniform(1, 30, (100, 3))
    kept, rows = solid(np.concatenate([loners, sheet]), 0.1)
    assert kept[100:].mean() > 0.99
    assert kept[:100].mean() < 0.05
    assert kept[rows].all()
    assert 300 < len(rows) < 600  # cells of the sheet


def test_a_crowd_in_one_cell_is_a_loner():
    crowd = np.random.default_rng(0).uniform(0, 0.05, (500, 3))
    assert not solid(crowd, 1.0)[0].any()
