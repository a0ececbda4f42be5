import numpy as np
import pytest
import torch

from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig, search_at_once
from tests.kernels.clouds import DEVICE, ON_GPU, assert_equal
from tests.pcreg.scenes import wavy_sheet


@pytest.fixture(scope="module")
def batch():
    return PointBatch.from_clouds([wavy_sheet(300), np.empty((0, 3)), wavy_sheet(200, seed=1)])


@pytest.mark.parametrize("snap", [False, True])
def test_every_level_is_a_subset_of_the_finer_one_and_triplets_connect_them(batch, snap):
    pyramid = Pyramid.build(batch, PyramidConfig(voxel=0.05, stem_kernel_size=5, snap=snap))
    for fine, coarse in zip(pyramid.levels, pyramid.levels[1:], strict=False):
        originals = {tuple(point) for point in fine.points.tolist()}
        assert {tuple(point) for point in coarse.points.tolist()} <= originals
        assert 0 < len(coarse) < len(fine)
        assert coarse.lengths[1] == 0
    sizes = [len(level) for level in pyramid.levels]
    assert [(t.n_out, t.n_in, t.n_cells) for t in pyramid.same] == [(n, n, 27) for n in sizes]
    down = [(t.n_out, t.n_in) for t in pyramid.down]
    assert down == list(zip(sizes[1:], sizes[:-1], strict=True))
    assert pyramid.stem.shape == (125, sizes[0])
    assert (pyramid.stem.sum(0) >= 1).all()
    for triplets in (*pyramid.same, *pyramid.down):  # each output has an input
        assert set(triplets.i.tolist()) == set(range(triplets.n_out))


def test_snapped_kernels_reach_the_whole_cube(batch):
    """A voxel at a corner of the cube is a neighbour, though further away than the native radius."""
    corner = PointBatch.from_clouds([np.array([[0, 0, 0], [0.1, 0.1, 0.1]])])
    geometry = {"voxel": 0.1, "n_levels": 1, "stem_kernel_size": 3}
    snapped = Pyramid.build(corner, PyramidConfig(**geometry, snap=True))
    native = Pyramid.build(corner, PyramidConfig(**geometry, radius_scale=0.9))
    assert (len(snapped.same[0]), snapped.stem.sum()) == (4, 4)
    assert (len(native.same[0]), native.stem.sum()) == (2, 2)


@pytest.mark.parametrize(
    ("kind", "stem_kernel_size", "n_levels"), [({}, 5, 3), ({"snap": True}, 3, 2), ({"kernel": "ppf"}, 3, 2)]
)
def test_searching_all_layers_at_once_finds_the_same(kind, stem_kernel_size, n_levels):
    """Search by Triton's kernels, on a GPU or else in the interpreter, compared with the CPU's."""
    pytest.importorskip("triton", reason="no triton for this platform")
    sizes = (3000, 0, 2000) if ON_GPU else (14, 0, 8)
    batch = PointBatch.from_clouds([wavy_sheet(n, seed=n) for n in sizes])
    size = {"voxel": 0.02} if ON_GPU else {"voxel": 0.1, "n_levels": n_levels}
    geometry = PyramidConfig(**size, stem_kernel_size=stem_kernel_size, **kind)
    expected = Pyramid.build(batch, geometry)
    found = search_at_once(batch.to(DEVICE), geometry)
    for level, wanted in zip(found.levels, expected.levels, strict=True):
        assert torch.equal(level.points.cpu(), wanted.points)
        assert torch.equal(level.lengths.cpu(), wanted.lengths)
    assert found.stem.dtype == expected.stem.dtype == torch.int32
    assert torch.equal(found.stem.cpu(), expected.stem)
    for triplets, wanted in zip(found.triplets, expected.triplets, strict=True):
        assert_equal(triplets, wanted)


@pytest.mark.parametrize(("N", "kind"), [(0, {}), (1, {"kernel": "ppf"})])
def test_searching_hardly_any_points_at_once(N, kind):
    pytest.importorskip("triton", reason="no triton for this platform")
    batch = PointBatch.from_clouds([np.ones((N, 3))]).to(DEVICE)
    pyramid = search_at_once(batch, PyramidConfig(voxel=0.1, n_levels=2, **kind))
    assert pyramid.stem.shape == (125, len(batch))
    assert pyramid.stem.sum() == len(batch)
    for triplets in (*pyramid.same, *pyramid.down):
        assert len(triplets) == len(triplets.transposed) == len(batch)


@pytest.mark.parametrize("kind", [{}, {"snap": True}, {"kernel": "ppf"}])
def test_the_first_layer_counts_what_its_kernels_would_see(batch, kind):
    pyramid = Pyramid.build(batch, PyramidConfig(voxel=0.05, stem_kernel_size=3, **kind))
    counts = [torch.bincount(i, minlength=len(batch)) for i, _ in pyramid.same[0].segments()]
    assert torch.equal(pyramid.stem, torch.stack(counts).int())


def test_clouds_are_moved_to_their_lower_corners():
    batch = PointBatch.from_clouds([np.array([[5e5, 4e6, 10.0], [5e5 + 1e-3, 4e6, 10.0]]), -np.ones((1, 3))])
    assert batch.lengths.tolist() == [2, 1]
    expected = torch.tensor([[0, 0, 0], [1e-3, 0, 0], [0, 0, 0]])
    torch.testing.assert_close(batch.points, expected, rtol=0, atol=1e-6)
