"""The statistics of the figure, on clouds whose answers are known."""

import numpy as np

from benchmarks.synthetic_outdoor import APART, RANGES, Sequence, Statistics


def test_statistics_of_a_level_plane_seen_twice() -> None:
    x, y = np.meshgrid(np.arange(-10, 10, 0.1), np.arange(-10, 10, 0.1))
    plane = np.stack([x.ravel(), y.ravel(), np.full(x.size, -1.5)], 1)
    T = np.tile(np.eye(4), (2, 1, 1))
    T[1, 0, 3] = 4.0  # a second plane, 4 m further on: 80 % of it lies on the first
    found = Statistics.of(Sequence([plane, plane], T))
    assert found.vertical[-1] == 1
    assert found.thickness[0] == 1
    assert abs(found.by_range.sum() - (20 / 0.3) ** 2) < 0.1 * (20 / 0.3) ** 2
    assert np.nanmax(np.abs(found.spacing - 0.1)) < 1e-6
    within = np.searchsorted(APART, 4.0) - 1
    assert abs(found.overlap[within] - 0.8) < 0.05
    assert np.isnan(np.delete(found.overlap, within)).all()
    assert (found.by_range[RANGES[1:] > 16] == 0).all()
