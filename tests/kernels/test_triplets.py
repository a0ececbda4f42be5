import gc
import math
import weakref
from collections import Counter

import numpy as np
import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.cpu.conv import find_buckets
from pcreg.kernels.pyramid_config import default_radius
from pcreg.kernels.triplets import Symmetry
from tests.kernels.clouds import native_triplets, random_batch, random_normals, random_triplets


def rows(triplets):
    return list(
        zip(triplets.cell_of_triplets().tolist(), triplets.i.tolist(), triplets.j.tolist(), strict=True)
    )


@pytest.mark.parametrize("kernel_size", [1, 3, 7])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_native_triplets_follow_the_definition(kernel_size, radius):
    centres, centre_lengths = random_batch([20, 0, 31])
    points, lengths = random_batch([25, 3, 40], seed=1)
    size = 0.1
    triplets = native_triplets(centres, points, centre_lengths, lengths, size, kernel_size, radius)
    reach = default_radius(size, kernel_size) if radius is None else radius
    pairs = reference.radius_search(centres, points, centre_lengths, lengths, reach)
    expected = [(reference.kernel_cell(points[j] - centres[i], size, kernel_size), i, j) for i, j in pairs]
    assert rows(triplets) == sorted(expected)


def test_default_radius_has_the_volume_of_the_kernel():
    assert default_radius(1.0, 3) == pytest.approx(1.861, abs=5e-4)
    assert 4 / 3 * math.pi * default_radius(0.2, 5) ** 3 == pytest.approx((5 * 0.2) ** 3)


def test_triplets_go_when_they_are_no_longer_used():
    triplets = random_triplets(33, 50)
    kept = [weakref.ref(triplets), weakref.ref(triplets.transposed)]
    gc.disable()
    try:
        del triplets
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("symmetry", [Symmetry.OPPOSITE, Symmetry.SWAPPED_HEIGHTS])
def test_symmetric_triplets_are_their_own_transposed_ones_in_other_cells(kernel_size, dtype, symmetry):
    points, lengths = random_batch([40, 0, 25], dtype=dtype)
    normals = (random_normals(65, dtype=dtype),) * 2 if symmetry == Symmetry.SWAPPED_HEIGHTS else None
    arguments = lengths, lengths, 0.15, kernel_size, None, normals
    triplets = native_triplets(points, points, *arguments)
    assert len(triplets) > 65 or kernel_size == 1
    other = symmetry.transposed_weight(torch.arange(kernel_size**3)).tolist()
    assert rows(triplets) == sorted((other[k], j, i) for k, i, j in rows(triplets))


@pytest.mark.parametrize("kernel_size", [1, 5])
@pytest.mark.parametrize("pitch", [None, 0.05])
@pytest.mark.parametrize("angles", [False, True])
def test_searching_half_of_the_pairs_finds_all(kernel_size, pitch, angles):
    """Half of the search mirrors cells instead of computing them: they must be exactly the same."""
    points, lengths = random_batch([80, 0, 1, 120])
    normals = random_normals(len(points))
    if pitch is not None:  # many offsets on the border of kernel cells
        points = torch.round(points / pitch) * pitch
    arguments = lengths, lengths, 0.1, kernel_size, 0.25, (normals, normals) if angles else None
    half, whole = (native_triplets(points, other, *arguments) for other in (points, points.clone()))
    assert rows(half) == rows(whole)


@pytest.mark.parametrize(("n_out", "n_in"), [(0, 0), (1, 1), (40, 63)])
def test_buckets_are_the_runs_of_equal_k_and_i(n_out, n_in):
    triplets = random_triplets(n_out, n_in, fan_in=0.6)
    runs = Counter((k, i) for k, i, _ in rows(triplets))
    i, offsets, k_offsets = find_buckets(triplets.i.numpy(), triplets.k_offsets.numpy())
    k = np.repeat(np.arange(27), np.diff(k_offsets)).tolist()
    sizes = np.diff(offsets).tolist()
    assert dict(zip(zip(k, i.tolist(), strict=True), sizes, strict=True)) == runs
    assert len(i) == len(runs)
