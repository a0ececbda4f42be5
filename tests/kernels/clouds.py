"""Small jagged batches with difficult cases, shared by the operator tests."""

from dataclasses import replace

import pytest
import torch

from pcreg.kernels.cpu.neighbors import pairs_within
from pcreg.kernels.cpu.stencil import counts, neighbours
from pcreg.kernels.pyramid_config import default_radius
from pcreg.kernels.tiles import CELLS, EMPTY, FIRST_SHARED, ROWS, Tiles
from pcreg.kernels.triplets import Symmetry, Triplets

# Where the Triton kernels are tested: on a GPU, or else in Triton's interpreter.
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
SIZES = 5  # classes of shared buckets by size; the last has SIZES - 1 points and more
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a GPU")


def random_batch(lengths, extent=1.0, seed=0, dtype=torch.float32):
    """Points uniform in a cube of edge `extent`, lengths as a tensor."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(sum(lengths), 3, generator=generator, dtype=dtype) * extent, torch.tensor(lengths)


def native_triplets(
    centres, points, centre_lengths, lengths, size, kernel_size=3, radius=None, normals=None, cube=False
):
    """Triplets and Tiles of a convolution on points, from the CPU; symmetric if centres are `points`."""
    arrays = [each.cpu().numpy() for each in (centres, points, centre_lengths, lengths)]
    symmetric = Symmetry.NONE
    if centres is points:
        arrays[1], symmetric = arrays[0], Symmetry.SWAPPED_HEIGHTS if normals else Symmetry.OPPOSITE
    both, radius = normals and [each.numpy() for each in normals], radius or default_radius(size, kernel_size)
    found = neighbours(*arrays, size, kernel_size, radius, both, cube)
    ijk = (torch.from_numpy(each).to(points.device) for each in found)
    return tiled(Triplets.from_unsorted(*ijk, len(centres), len(points), kernel_size**3, symmetric))


def tiled(triplets):
    """Triplets with Tiles, and the transposed ones with theirs, as the search for GPUs returns them."""
    there = replace(triplets, tiles=tiles_of(triplets), _transposed=[])
    if not triplets.symmetric:
        back = triplets.transposed
        there.pair_with(replace(back, tiles=tiles_of(back), _transposed=[]))
    return there


def tiled_pyramid(pyramid):
    """The pyramid with Tiles."""
    same, down = ([tiled(each) for each in side] for side in (pyramid.same, pyramid.down))
    return replace(pyramid, same=same, down=down)


def tiles_of(triplets):
    """Tiles of triplets, by their definition."""
    i, j, k, n_out = triplets.i, triplets.j, triplets.cell_of_triplets(), triplets.n_out
    K, n_tiles = triplets.n_cells, -(-n_out // ROWS)
    bucket, size = torch.unique_consecutive(k * n_out + i, return_counts=True)
    first = size.cumsum(0) - size
    source = torch.full((K * n_out,), EMPTY, dtype=torch.int32, device=i.device)
    source[bucket[size == 1]] = j[first[size == 1]]

    bucket, first, size = (each[size > 1] for each in (bucket, first, size))
    k, i = bucket // n_out, bucket % n_out
    key = (i // ROWS * SIZES + size.clamp(max=SIZES - 1)) * -(-K // CELLS) + k // CELLS
    order = torch.sort(key * ROWS + i % ROWS, stable=True).indices
    bucket, first, size, tile = (each[order] for each in (bucket, first, size, i // ROWS))
    per_tile = torch.bincount(tile, minlength=n_tiles)
    tile_offsets = torch.cat([per_tile.new_zeros(1), per_tile.cumsum(0)])
    within_tile = torch.arange(len(tile), device=i.device) - tile_offsets[tile]
    source[bucket] = (FIRST_SHARED - within_tile).int()
    max_shared = int(per_tile.max()) if n_tiles else 0
    return Tiles(source.view(K, n_out), first, size.int(), tile_offsets.int(), max_shared)


def random_triplets(n_out, n_in, kernel_size=3, fan_in=0.35, seed=0, device="cpu"):
    """Native triplets between two random clouds; `fan_in` widens the radius and so the buckets."""
    centres, centre_lengths = random_batch([n_out], seed=seed)
    points, lengths = random_batch([n_in], seed=seed + 1)
    batches = (each.to(device) for each in (centres, points, centre_lengths, lengths))
    return native_triplets(*batches, fan_in / kernel_size, kernel_size, fan_in)


def counted(points, lengths, size, kernel_size, radius, normals=None):
    """Number (K, N) of points that each point sees through each kernel cell, from the CPU."""
    pairs = pairs_within(points.numpy(), lengths.numpy(), radius)
    own = None if normals is None else normals.numpy()
    return torch.from_numpy(counts(pairs, len(points), size, kernel_size, radius, own))


def assert_equal(found, expected):
    """Assert that triplets of any device equal the expected ones exactly."""
    assert (found.n_out, found.n_in, found.symmetric) == (expected.n_out, expected.n_in, expected.symmetric)
    for name in ("i", "j", "k_offsets"):
        assert torch.equal(getattr(found, name).cpu(), getattr(expected, name)), name


def random_normals(n, seed=5, dtype=torch.float32):
    vectors = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return torch.nn.functional.normalize(vectors, dim=1)
