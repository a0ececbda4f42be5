import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.cpu.neighbors import pairs_within
from pcreg.kernels.neighbors import radius_search
from tests.kernels.clouds import random_batch


def found(queries, points, query_lengths, point_lengths, radius):
    i, j = radius_search(queries, points, query_lengths, point_lengths, radius)
    assert (torch.diff(i) >= 0).all()
    pairs = list(zip(i.tolist(), j.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    return set(pairs)


@pytest.mark.parametrize(
    ("dtype", "offset"),
    [(torch.float32, -3.7), (torch.float32, 1e7), (torch.float64, 0.0), (torch.float64, 1e4)],
)
@pytest.mark.parametrize("radius", [0.01, 0.2, 5.0])
def test_equals_brute_force_on_batches(dtype, offset, radius):
    points, lengths = random_batch([1, 63, 0, 200], dtype=dtype)
    queries, query_lengths = random_batch([7, 33, 5, 64], seed=1, dtype=dtype)
    points, queries = points + offset, queries + offset
    expected = reference.radius_search(queries, points, query_lengths, lengths, radius)
    assert found(queries, points, query_lengths, lengths, radius) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 0.7, 1e3])
def test_the_dtype_of_the_points_decides_at_the_boundary(dtype, offset):
    """Rounding makes a step of 0.1 longer or shorter than the radius, depending on the coordinates."""
    axis = torch.arange(8, dtype=dtype) * 0.1 + offset
    points, lengths = torch.cartesian_prod(axis, axis, axis), torch.tensor([512])
    expected = reference.radius_search(points, points, lengths, lengths, 0.1)
    assert len(expected) > 512
    assert found(points, points, lengths, lengths, 0.1) == expected
    i, j, _ = pairs_within(points.numpy(), lengths.numpy(), 0.1)
    assert set(zip(i.tolist(), j.tolist(), strict=True)) == {(i, j) for i, j in expected if i < j}


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan")])
def test_radius_must_be_positive(radius):
    points, lengths = random_batch([3])
    with pytest.raises(ValueError, match="radius must be positive"):
        radius_search(points, points, lengths, lengths, radius)
