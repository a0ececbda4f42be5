"""Scatter matrices beside those of a loop, in blocks of any size."""

import numpy as np
import pytest

from pcreg.geometry.normals import scatter_matrices


@pytest.mark.parametrize("at_once", [1, 7, 2048])
def test_scatter_matrices_are_those_of_a_loop(monkeypatch, at_once):
    """Of points with more than thirty neighbours, with a few, and with none but itself."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 0.1, (90, 3)), rng.normal(0, 1, (60, 3)), [[50.0, 0, 0]]]) + 100
    monkeypatch.setattr("pcreg.geometry.normals.QUERIES_AT_ONCE", at_once)
    found, counts = scatter_matrices(points[::2], points, 0.3), []
    for query, matrix in zip(points[::2], found, strict=True):
        distance = np.linalg.norm(points - query, axis=1)
        around = points[np.argsort(distance)[:30]]
        around = around[np.sort(distance)[:30] < 0.3]
        centred = around - around.mean(0)
        np.testing.assert_allclose(matrix, centred.T @ centred, atol=1e-12)
        counts.append(len(around))
    assert {1, 30} <= set(counts)
    assert any(1 < count < 30 for count in counts)
