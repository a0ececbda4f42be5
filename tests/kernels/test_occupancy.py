"""The search by a bitmap equals the CPU's, and knows when it is not the right one."""

import pytest
import torch

from pcreg.kernels import stencil
from pcreg.kernels.tiles import Tiles
from tests.kernels.clouds import DEVICE, ON_GPU

occupancy = pytest.importorskip("pcreg.kernels.triton.search.occupancy", reason="no triton for this platform")
triplet_search = pytest.importorskip("pcreg.kernels.triton.search.triplets")

SIDE = 40 if ON_GPU else 6  # voxels on either side of the middle


def voxels(n_clouds, seed=0):
    """Clouds of voxels in no order, one of them empty if there are several, and their lengths."""
    generator = torch.Generator().manual_seed(seed)
    clouds = []
    for cloud in range(n_clouds):
        cells = torch.randint(-SIDE, SIDE + 1, (0 if cloud == 1 else SIDE**3, 3), generator=generator)
        cells = torch.unique(cells, dim=0)
        clouds.append(cells[torch.randperm(len(cells), generator=generator)])
    return torch.cat(clouds), torch.tensor(list(map(len, clouds)))


def find(centres, points, centre_lengths, lengths, stride, kernel_size):
    moved = [tensor.to(DEVICE) for tensor in (centres, points, centre_lengths, lengths)]
    if centres is points:
        moved[0] = moved[1]
    return occupancy.find_by_occupancy(*moved, stride, kernel_size)


def check(centres, points, centre_lengths, lengths, stride=1, kernel_size=3):
    expected = stencil.voxel_triplets(centres, points, centre_lengths, lengths, stride, kernel_size)
    found = find(centres, points, centre_lengths, lengths, stride, kernel_size)
    assert (found.n_out, found.n_in, found.symmetric) == (expected.n_out, expected.n_in, expected.symmetric)
    for name in ("i", "j", "k_offsets"):
        assert torch.equal(getattr(found, name).cpu(), getattr(expected, name)), name
    with torch.inference_mode():
        tiles = find(centres, points, centre_lengths, lengths, stride, kernel_size)._arrangements["tiles"]
    wanted = Tiles.build(expected.i, expected.j, expected.k_offsets, expected.n_out)
    assert tiles.max_shared == wanted.max_shared == 0
    for brought, own in zip(tiles.tensors(), wanted.tensors(), strict=True):
        assert torch.equal(brought.cpu(), own)
    return found


@pytest.mark.parametrize("n_clouds", [1, 3])
@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_voxels_among_themselves(n_clouds, kernel_size):
    points, lengths = voxels(n_clouds)
    assert len(check(points, points, lengths, lengths, 1, kernel_size)) >= len(points)


@pytest.mark.parametrize("n_clouds", [1, 3])
@pytest.mark.parametrize(("stride", "kernel_size"), [(1, 3), (2, 3), (2, 5), (3, 3)])
def test_centres_of_their_own(n_clouds, stride, kernel_size):
    """Many of them out of reach of the points."""
    points, lengths = voxels(n_clouds)
    centres, centre_lengths = voxels(n_clouds, seed=1)
    assert len(check(centres, points, centre_lengths, lengths, stride, kernel_size)) > 0


@pytest.mark.parametrize("kernel_size", [3, 5, 7])
def test_a_full_block_has_full_words(kernel_size):
    points, lengths = torch.cartesian_prod(*map(torch.arange, (2, 2, 40))), torch.tensor([2 * 2 * 40])
    found = check(points, points, lengths, lengths, 1, kernel_size)
    assert int(found.counts().sum(0).max()) == 2 * 2 * kernel_size


def test_centres_at_the_very_edge_of_what_is_numbered():
    """A single voxel, seen by the 5^3 around it and by none beyond, and in its own cloud alone."""
    axis = torch.arange(-3, 4)
    centres, points = torch.cartesian_prod(axis, axis, axis), torch.zeros(2, 3, dtype=torch.int64)
    lengths = torch.tensor([len(centres)] * 2), torch.tensor([1, 1])
    assert len(check(centres.repeat(2, 1), points, *lengths, 1, 5)) == 2 * 125


def test_clouds_that_only_the_centres_have_see_nothing():
    points, centres = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(4, 3, dtype=torch.int64)
    assert len(find(centres, points, torch.tensor([2, 2]), torch.tensor([1]), 1, 3)) == 2


@pytest.mark.parametrize("corner", [2**62, -(2**63) + 100, 2**63 - 100])
def test_far_from_the_origin(corner):
    points, lengths = voxels(1)
    points += corner
    check(points, points, lengths, lengths)


def test_slices_of_wider_rows():
    points, lengths = voxels(1)
    wide = points.repeat(1, 2)
    check(wide[1:, 1:4], wide[1:, 1:4].flip(0), lengths - 1, lengths - 1)


def test_several_points_in_a_voxel_are_for_sorted_voxels():
    points, lengths = voxels(1)
    points[-1] = points[0]
    assert find(points, points, lengths, lengths, 1, 3) is None
    expected = stencil.voxel_triplets(points, points, lengths, lengths)
    points, lengths = points.to(DEVICE), lengths.to(DEVICE)
    found = triplet_search.search_voxels(points, points, lengths, lengths, 1, 3)
    assert torch.equal(found.i.cpu(), expected.i)
    assert torch.equal(found.j.cpu(), expected.j)


@pytest.mark.parametrize("far", [2**12, 2**20, 2**40, 2**62, -(2**63)])
def test_voxels_far_apart_are_for_sorted_voxels(far):
    points, lengths = voxels(1)
    points[len(points) // 2] = far
    assert find(points, points, lengths, lengths, 1, 3) is None


def test_so_are_those_without_room(monkeypatch):
    points, lengths = voxels(1)
    monkeypatch.setattr(occupancy, "MORE_WORDS", 2)
    for per_point, there in ((0, False), (8, True)):
        monkeypatch.setattr(occupancy, "WORDS_PER_POINT", per_point)
        assert (find(points, points, lengths, lengths, 1, 3) is not None) == there


@pytest.mark.parametrize(("n_centres", "n_points"), [(0, 0), (0, 4), (4, 0)])
def test_nothing_is_for_sorted_voxels(n_centres, n_points):
    centres, points = (torch.arange(3 * n).view(n, 3) for n in (n_centres, n_points))
    lengths = torch.tensor([n_centres]), torch.tensor([n_points])
    assert find(centres, points, *lengths, 1, 3) is None
    moved = [tensor.to(DEVICE) for tensor in (centres, points, *lengths)]
    found = triplet_search.search_voxels(*moved, 1, 3)
    assert (len(found), found.n_cells, found.n_out, found.n_in) == (0, 27, n_centres, n_points)


def test_cells_that_cannot_be_numbered_are_refused():
    points = torch.tensor([[-(2**40)] * 3, [2**40] * 3], device=DEVICE)
    lengths = torch.tensor([2], device=DEVICE)
    with pytest.raises(ValueError, match="take larger cells"):
        triplet_search.search_voxels(points, points, lengths, lengths, 1, 3)
