"""Occupied and crowded cells: by kernels, on a GPU or else in Triton's interpreter, and by the definition."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels import cell_counts as definition
from pcreg.kernels.triton import cell_counts as kernel
from tests.kernels.clouds import DEVICE


@pytest.mark.parametrize("S", [0, 1, 63, 512, 1300])
@pytest.mark.parametrize("min_points", [1, 2, 8])
@pytest.mark.parametrize("scales", [[0.9], [7.3], [7.3, 0.9, 3.1]])
def test_cells_are_counted(S, min_points, scales):
    columns = np.random.default_rng(S).uniform(0, 1.3, (3, S)).astype(np.float32)
    scales = np.float32(scales).tolist()
    expected, shapes = [], []
    for scale in scales:
        cells = (columns * np.float32(scale)).astype(int)
        shapes.append((cells.max(1, initial=0) + 1).tolist())
        counts = np.unique(cells, axis=1, return_counts=True)[1] if S else np.empty(0, int)
        expected.append([len(counts), counts[counts >= min_points].sum()])
    for by in definition, kernel:
        found = by.occupied_and_crowded(torch.from_numpy(columns).to(DEVICE), scales, shapes, min_points)
        assert found.tolist() == expected
