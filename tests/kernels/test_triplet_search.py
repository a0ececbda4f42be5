"""The GPU's search equals the CPU's to the last triplet: on a GPU, or else in Triton's interpreter."""

from dataclasses import replace

import pytest
import torch

from tests.kernels.clouds import (
    DEVICE,
    ON_GPU,
    assert_equal,
    counted,
    native_triplets,
    random_batch,
    random_normals,
)

pytest.importorskip("triton", reason="no triton for this platform")
run = pytest.importorskip("pcreg.kernels.triton.search.run")
query = pytest.importorskip("pcreg.kernels.triton.search.query")
cell_index = pytest.importorskip("pcreg.kernels.triton.search.index")

MANY = 40 if ON_GPU else 1  # times as many points


def batch(lengths, seed=0, dtype=torch.float32):
    return random_batch([MANY * length for length in lengths], seed=seed, dtype=dtype)


def search_for(centres, points, centre_lengths, lengths, size, kernel_size, radius, normals=None, cube=False):
    kernel = {"size": size, "kernel_size": kernel_size, "normals": normals, "cube": cube}
    pairs = query.pair_search(centres, points, centre_lengths, lengths, radius)
    return replace(pairs, symmetric=centres is points, **kernel)


def search(*arguments):
    return run.find_triplets([search_for(*arguments)])[0]


def check_native(centres, points, centre_lengths, lengths, *rest, normals=None, cube=False):
    """Compare the triplets of the search for GPUs with the CPU's; returns the latter."""
    on_device = [tensor.to(DEVICE) for tensor in (centres, points, centre_lengths, lengths)]
    if centres is points:
        on_device[1] = on_device[0]
    expected = native_triplets(centres, points, centre_lengths, lengths, *rest, normals, cube)
    there = normals and tuple(each.to(DEVICE) for each in normals)
    found = search(*on_device, *rest, there, cube)
    assert_equal(found, expected)
    for brought, wanted in zip(found.tiles.tensors(), expected.tiles.tensors(), strict=True):
        assert torch.equal(brought.cpu(), wanted)
    assert found.tiles.max_shared == expected.tiles.max_shared
    return expected


@pytest.mark.parametrize(
    ("dtype", "offset", "kernel_size", "radius", "angles"),
    [
        (torch.float32, -3.7, 3, 0.2, False),
        (torch.float64, 1e4, 3, 0.2, False),
        (torch.float32, 0.0, 5, 0.3, True),
        (torch.float64, 0.0, 3, 0.2, True),
    ],
)
def test_equals_the_search_on_the_cpu(dtype, offset, kernel_size, radius, angles):
    points, lengths = batch([1, 23, 0, 30], dtype=dtype)
    queries, query_lengths = batch([7, 9, 5, 14], seed=1, dtype=dtype)
    points, queries = points + offset, queries + offset
    normals = random_normals(len(points), dtype=dtype)
    normals[3] = 0.0
    own = random_normals(len(queries), seed=6, dtype=dtype)
    kernel = radius / 2, kernel_size, radius
    both = (own, normals) if angles else None
    assert len(check_native(queries, points, query_lengths, lengths, *kernel, normals=both)) > 0
    both = (normals, normals) if angles else None
    check_native(points, points, lengths, lengths, *kernel, normals=both)
    there, both = points.to(DEVICE), both and [each.to(DEVICE) for each in both]
    found = run.count_triplets(search_for(there, there, *[lengths.to(DEVICE)] * 2, *kernel, both))
    wanted = counted(points, lengths, *kernel, normals if angles else None)
    assert torch.equal(found.cpu(), wanted)


def test_centres_beyond_the_points_and_clouds_that_only_they_have():
    points, lengths = batch([30, 0, 25])
    queries, query_lengths = batch([9, 4, 12], seed=1)
    check_native(3 * queries - 1, points, query_lengths, lengths, 0.2, 3, 0.4)
    own, centres = points[: lengths[0]], queries[: query_lengths[0]]
    first = native_triplets(centres, own, query_lengths[:1], lengths[:1], 0.2, 3, 0.4)
    on_device = [tensor.to(DEVICE) for tensor in (queries, own, query_lengths, lengths[:1])]
    found = search(*on_device, 0.2, 3, 0.4)
    assert torch.equal(found.i.cpu(), first.i)
    assert torch.equal(found.j.cpu(), first.j)


@pytest.mark.parametrize(("stride", "kernel_size"), [(1, 1), (1, 5), (2, 3)])
def test_voxels_are_seen_by_the_whole_cube(stride, kernel_size):
    """Two clouds whose voxels hold up to three points each."""
    cells, lengths = torch.randint(-2, 2, (MANY * 40, 3)), torch.tensor([MANY * 15, MANY * 25])
    centres = cells if stride == 1 else cells // stride
    points = cells.double()
    centres = points if stride == 1 else stride * centres.double()
    check_native(centres, points, lengths, lengths, 1.0, kernel_size, kernel_size // 2 + 0.5, cube=True)


def test_boundary_is_inclusive_and_halves_are_rounded_to_even_on_a_lattice():
    axis = torch.arange(-1, 2, dtype=torch.float32) * 0.5
    points = torch.cartesian_prod(axis, axis, axis)
    lengths = torch.tensor([len(points)])
    found = check_native(points, points, lengths, lengths, 1.0, 3, 0.5)
    assert len(found) == 27 + 2 * 54


def test_duplicates_share_a_bucket_in_ascending_order():
    points = torch.zeros(9, 3)
    lengths = torch.tensor([2, 7])
    found = check_native(points, points, lengths, lengths, 0.1, 1, 0.1)
    assert found.j.tolist() == [0, 1, 0, 1, *list(range(2, 9)) * 7]


@pytest.mark.parametrize(("n_queries", "n_points"), [(0, 4), (4, 0)])
def test_empty_clouds_have_no_neighbours(n_queries, n_points):
    queries, points = torch.zeros(n_queries, 3), torch.zeros(n_points, 3)
    found = check_native(queries, points, torch.tensor([n_queries]), torch.tensor([n_points]), 1.0, 3, 1.0)
    assert len(found) == 0


def test_far_outliers_do_not_break_the_cells():
    points, lengths = random_batch([30], dtype=torch.float64)
    points[0] = torch.tensor([1e9, -1e9, 1e9], dtype=torch.float64)
    points[1] = points[0] + 0.05
    check_native(points, points, lengths, lengths, 0.1, 3, 0.1)


def test_tiles_of_more_kernel_cells_than_are_listed_together():
    """Points beyond the kernel's faces, a quarter of the radius away, are clamped and share buckets."""
    points, lengths = batch([30])
    expected = check_native(points, points, lengths, lengths, 0.1, 5, 0.9)
    assert {2, 3, 4, 5} <= set(expected.tiles.shared_size.tolist())


def test_slices_of_wider_rows_are_read_as_what_they_are():
    rows = batch([30])[0].repeat(1, 2)[:, 1:5]
    points, lengths = rows[:, :3], torch.tensor([len(rows)])
    assert not points.is_contiguous()
    check_native(points, points, lengths, lengths, 0.1, 3, 0.2)
    check_native(points.flip(1), points, lengths, lengths, 0.1, 3, 0.2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the interpreter
def test_what_cannot_be_searched_is_refused():
    points, lengths = (each.to(DEVICE) for each in batch([5]))
    for radius in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="radius must be positive"):
            search(points, points, lengths, lengths, 0.1, 3, radius)
    with pytest.raises(ValueError, match="both in float32 or both in float64"):
        search(points.double(), points, lengths, lengths, 0.1, 3, 0.2)
    points[2, 1] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        search(points, points, lengths, lengths, 0.1, 3, 0.2)


def test_too_many_cells_are_refused():
    points = torch.tensor([[0.0, 0, 0], [1e9, 1e9, 1e9]], device=DEVICE)
    frame = torch.tensor([0.0] * 3 + [1e9] * 3 + [1e-3], dtype=torch.float64, device=DEVICE)
    cloud = torch.zeros(2, dtype=torch.int32, device=DEVICE)
    index = cell_index.CellIndex.build(points, cloud, frame, 1e-3, 1)
    with pytest.raises(ValueError, match="take larger cells"):
        run.find_triplets([run.Search(index, points, cloud, 1e-3, 1, 1e-3)])
