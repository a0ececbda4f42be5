"""Numbers of points in kernel cells, which are the input of the first convolution."""

import pytest
import torch

from pcreg.kernels import reference
from pcreg.kernels.epilogue import Epilogue
from pcreg.kernels.triplets import Triplets
from pcreg.models.layers import FirstConv
from tests.kernels.clouds import counted, native_triplets, random_batch, random_normals


@pytest.mark.parametrize("angles", [False, True])
def test_a_part_at_a_time_counts_the_same(angles, monkeypatch):
    points, lengths = random_batch([40, 0, 25])
    normals = random_normals(len(points)) if angles else None
    wanted = counted(points, lengths, 0.1, 5, 0.3, normals)
    monkeypatch.setattr("pcreg.kernels.cpu.stencil.PAIRS_AT_ONCE", 7)
    assert torch.equal(counted(points, lengths, 0.1, 5, 0.3, normals), wanted)


def test_the_first_convolution_is_that_of_ones():
    points, lengths = random_batch([60, 40])
    triplets = native_triplets(points, points, lengths, lengths, 0.1, 5, 0.3)
    layer = FirstConv(6, 5).double()
    ones = torch.ones(len(points), 1, dtype=torch.float64)
    wanted = reference.mvmr(ones, layer.weight, triplets)
    found = layer(counted(points, lengths, 0.1, 5, 0.3), None)
    torch.testing.assert_close(found, wanted)
    gradient = torch.randn(found.shape, dtype=torch.float64)
    (found,) = torch.autograd.grad(found, layer.weight, gradient)
    torch.testing.assert_close(found, reference.vvor(ones, gradient, triplets))


def test_the_first_convolution_ends_with_its_epilogue_either_way():
    points, lengths = random_batch([60, 40])
    counts = counted(points, lengths, 0.1, 5, 0.3)
    layer = FirstConv(6, 5)
    epilogue = Epilogue(bias=torch.randn(6), residual=torch.randn(len(points), 6), relu=True)
    with torch.no_grad():
        wanted = torch.relu(layer(counts, None) + epilogue.bias + epilogue.residual)
        torch.testing.assert_close(layer(counts, None, epilogue), wanted)
        identity = Triplets.identity(len(points), points.device)
        torch.testing.assert_close(layer(counts, identity, epilogue), wanted)
