"""Weights in bfloat16 parts, which inference keeps."""

import pytest
import torch

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton import blocks
from pcreg.kernels.triton.blocks import parts, weight_parts
from pcreg.models.torch_inference import TorchInference
from tests.kernels.clouds import DEVICE
from tests.pcreg.tiny import network


def test_three_bfloat16_parts_are_the_float32():
    scales = 10.0 ** torch.arange(-3, 7)
    values = torch.randn(157, 10, generator=torch.Generator().manual_seed(0)) * scales
    high, middle, low = parts(values.to(DEVICE)).cpu().double()
    assert torch.equal(high + middle + low, values.double())


def test_kept_parts_follow_their_weight_and_end_with_it():
    before, weight = len(blocks._kept), torch.randn(27, 1, 4, 8, device=DEVICE)
    with torch.inference_mode():
        kept = weight_parts(weight)
        assert weight_parts(weight) is kept
    weight.mul_(2)
    with torch.inference_mode():
        assert torch.equal(weight_parts(weight), parts(weight))
    assert len(blocks._kept) == before + 1
    del weight
    assert len(blocks._kept) == before


def test_descriptors_have_the_weights_of_today_whatever_changed_them():
    """Fused optimizers and averages of weights on a GPU do not raise a tensor's version counter."""
    changed = network()
    TorchInference(changed, DEVICE)
    weight = changed.conv2.weight
    with torch.inference_mode():
        weight_parts(weight)
    weight.data.mul_(2)  # uncounted
    TorchInference(changed, DEVICE)
    with torch.inference_mode():
        assert torch.equal(weight_parts(weight), parts(weight))
