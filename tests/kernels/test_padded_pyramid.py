"""Operators on a padded pyramid, on a GPU or in Triton's interpreter, against those on its own arrays."""

import pytest
import torch

from pcreg.kernels.padded_pyramid import PaddedPyramid
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from tests.kernels.clouds import DEVICE, tiled_pyramid
from tests.pcreg.scenes import wavy_sheet

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton import output_stationary, weight_gradient

pytestmark = pytest.mark.usefixtures("bfloat16_in_the_interpreter")

GEOMETRY = PyramidConfig(voxel=0.08, n_levels=2)
C, M = 3, 5


def pyramid(*sizes):
    clouds = [wavy_sheet(size, seed=number) for number, size in enumerate(sizes)]
    batch = PointBatch.from_clouds(clouds).to(DEVICE)
    return tiled_pyramid(Pyramid.build(batch, GEOMETRY, (1, len(sizes) - 1)))


def values(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(DEVICE)


def padded(rows, size):
    """The rows, followed by rows of NaN, which would appear in results that read them."""
    return torch.cat([rows, rows.new_full((size - len(rows), rows.shape[1]), torch.nan)])


def test_what_was_loaded_last_is_convolved_as_it_is():
    weight, large = values(27, 1, C, M), pyramid(130, 60)
    room = PaddedPyramid(large)
    for given in (large, pyramid(50, 60)):
        assert room.has_room_for(given)
        room.load(given)
        own = room.pyramid
        assert torch.equal(own.stem[:, : given.stem.shape[1]], given.stem)
        assert not own.stem[:, given.stem.shape[1] :].any()
        for level, groups in enumerate(given.row_groups):
            assert own.row_groups[level].bounds(DEVICE).tolist() == groups.bounds(DEVICE).tolist()
        for there, here in zip(given.triplets, own.triplets, strict=True):
            features, grad = values(there.n_in, C), values(there.n_out, M)
            seen, back = padded(features, here.n_in), padded(grad, here.n_out)
            wanted = output_stationary.mvmr(features, weight, there)
            found = output_stationary.mvmr(seen, weight, here)
            torch.testing.assert_close(found[: there.n_out], wanted, rtol=1e-5, atol=1e-5)
            assert not found[there.n_out :].any()
            found = weight_gradient.vvor(seen, back, here, torch.float32)
            torch.testing.assert_close(found, weight_gradient.vvor(features, grad, there, torch.float32))


def test_a_pyramid_that_finds_no_room_gets_more_and_none_is_lost():
    flat, tall = pyramid(300, 20), pyramid(150, 170, 40)
    room = PaddedPyramid(flat)
    assert not room.has_room_for(pyramid(300, 200))
    both = PaddedPyramid(tall, room)
    assert both.has_room_for(flat)
    assert both.has_room_for(tall)
