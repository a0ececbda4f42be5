"""Weights in parts, which inference keeps."""

import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton import precision
from pcreg.kernels.triton.precision import parts, weight_parts
from tests.kernels.clouds import DEVICE


@pytest.fixture
def weight():
    return torch.randn(27, 1, 4, 8, device=DEVICE)


def test_parts_are_computed_once_until_the_weight_changes(weight):
    with torch.inference_mode():
        kept = weight_parts(weight)
        assert weight_parts(weight) is kept
        assert weight_parts(weight.clone()) is not kept
    weight.mul_(2)
    with torch.inference_mode():
        changed = weight_parts(weight)
    assert torch.equal(changed, parts(weight))
    assert not torch.equal(changed, kept)


def test_nothing_is_kept_but_in_inference(weight):
    with torch.no_grad():
        assert weight_parts(weight) is not weight_parts(weight)
    with torch.inference_mode():
        assert torch.equal(weight_parts(weight), parts(weight))
        own = weight.clone()  # knows nothing of its changes
        assert weight_parts(own) is not weight_parts(own)


def test_parts_end_with_their_weight():
    before, weight = len(precision._kept), torch.randn(27, 1, 4, 8, device=DEVICE)
    with torch.inference_mode():
        weight_parts(weight)
    assert len(precision._kept) == before + 1
    del weight
    assert len(precision._kept) == before
