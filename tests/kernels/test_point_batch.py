import numpy as np
import torch

from pcreg.kernels.point_batch import PointBatch


def test_clouds_are_moved_to_their_lower_corners():
    batch = PointBatch.from_clouds([np.array([[5e5, 4e6, 10.0], [5e5 + 1e-3, 4e6, 10.0]]), -np.ones((1, 3))])
    assert batch.lengths.tolist() == [2, 1]
    expected = torch.tensor([[0, 0, 0], [1e-3, 0, 0], [0, 0, 0]])
    torch.testing.assert_close(batch.points, expected, rtol=0, atol=1e-6)
