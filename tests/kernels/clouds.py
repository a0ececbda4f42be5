"""Small jagged batches with known awkwardness, shared by the operator tests."""

import pytest
import torch

from pcreg.kernels.cpu.neighbors import pairs_within
from pcreg.kernels.cpu.stencil import counts
from pcreg.kernels.stencil import native_triplets

# Where the Triton kernels are tested: on a GPU, or else in Triton's interpreter.
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a GPU")


def random_batch(lengths, extent=1.0, seed=0, dtype=torch.float32):
    """Points uniform in a cube of edge `extent`, lengths as a tensor."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(sum(lengths), 3, generator=generator, dtype=dtype) * extent, torch.tensor(lengths)


def random_triplets(n_out, n_in, kernel_size=3, fan_in=0.35, seed=0, device="cpu"):
    """Native triplets between two random clouds; `fan_in` widens the radius and so the buckets."""
    centres, centre_lengths = random_batch([n_out], seed=seed)
    points, lengths = random_batch([n_in], seed=seed + 1)
    batches = (each.to(device) for each in (centres, points, centre_lengths, lengths))
    return native_triplets(*batches, fan_in / kernel_size, kernel_size, fan_in)


def counted(points, lengths, size, kernel_size, radius, normals=None):
    """Numbers (K, N) of the points that each point sees through each kernel cell, by the CPU."""
    pairs = pairs_within(points.numpy(), lengths.numpy(), radius)
    own = None if normals is None else normals.numpy()
    return torch.from_numpy(counts(pairs, len(points), size, kernel_size, radius, own))


def assert_equal(found, expected):
    """Triplets of any device are those expected, to the last one."""
    assert (found.n_out, found.n_in, found.symmetric) == (expected.n_out, expected.n_in, expected.symmetric)
    for name in ("i", "j", "k_offsets"):
        assert torch.equal(getattr(found, name).cpu(), getattr(expected, name)), name


def random_normals(n, seed=5, dtype=torch.float32):
    vectors = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return torch.nn.functional.normalize(vectors, dim=1)
