import pytest
import torch

from pcreg.kernels.tiles import EMPTY, FIRST_SHARED, ROWS, SIZES
from pcreg.kernels.triplets import Triplets
from tests.kernels.clouds import random_triplets


def rows_read(triplets: Triplets) -> dict[tuple[int, int], list[int]]:
    """{(k, i): the rows j that the output-stationary kernel adds up for that bucket}."""
    tiles = triplets.tiles
    read = {}
    for k, row in enumerate(tiles.source.tolist()):
        for i, at in enumerate(row):
            if at >= 0:
                read[k, i] = [at]
            elif at != EMPTY:
                bucket = int(tiles.tile_offsets[i // ROWS]) + FIRST_SHARED - at
                first, size = int(tiles.shared_first[bucket]), int(tiles.shared_size[bucket])
                read[k, i] = triplets.j[first : first + size].tolist()
    return read


@pytest.mark.parametrize(("n_out", "n_in"), [(0, 0), (0, 9), (1, 1), (40, 63), (3 * ROWS - 1, 90)])
def test_tiles_hold_every_triplet_in_its_bucket(n_out, n_in):
    triplets = random_triplets(n_out, n_in, fan_in=0.5)
    expected = {}
    for k, (i, j) in enumerate(triplets.segments()):
        for row, neighbour in zip(i.tolist(), j.tolist(), strict=True):
            expected.setdefault((k, row), []).append(neighbour)
    tiles = triplets.tiles
    assert rows_read(triplets) == expected
    assert tiles.source.shape == (27, n_out)
    assert len(tiles.tile_offsets) == -(-n_out // ROWS) + 1
    assert tiles.max_shared == max(torch.diff(tiles.tile_offsets).tolist(), default=0)


def test_shared_buckets_of_a_tile_ascend_in_size():
    tiles = random_triplets(2 * ROWS, 200, fan_in=0.5).tiles
    sizes = tiles.shared_size.clamp(max=SIZES - 1)
    assert sizes.min() >= 2
    for low, high in zip(tiles.tile_offsets[:-1].tolist(), tiles.tile_offsets[1:].tolist(), strict=True):
        assert (torch.diff(sizes[low:high]) >= 0).all()
