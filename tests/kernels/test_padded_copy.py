"""Copies into larger arrays: by the kernel, on a GPU or else in Triton's interpreter, and as defined."""

import pytest
import torch

from pcreg.kernels.padded_copy import PaddedCopy, copy_padded
from tests.kernels.clouds import DEVICE

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton.padded_copy import copy_padded as by_kernel

CASES = [  # shape of the source, columns of the target, dtype, behind
    ((5,), 5, torch.int64, None),
    ((1500,), 3000, torch.int32, None),
    ((3, 1025), 2050, torch.int32, -1),
    ((27, 3), 4, torch.int32, 0),
    ((700,), 1100, torch.int64, None),
]


@pytest.mark.parametrize("function", [copy_padded, by_kernel])
def test_all_arrive_and_what_is_behind_is_filled_or_left(function):
    generator, copies, wanted = torch.Generator().manual_seed(0), [], []
    for shape, columns, dtype, behind in CASES:
        source = torch.randint(-9, 2**31 - 1, shape, generator=generator).to(DEVICE, dtype)
        target = torch.full((*shape[:-1], columns), 7, dtype=dtype, device=DEVICE)
        copies.append(PaddedCopy(source, target, behind))
        filled = torch.full_like(target, 7 if behind is None else behind)
        filled[..., : shape[-1]] = source
        wanted.append(filled)
    function(copies)
    for copy, result in zip(copies, wanted, strict=True):
        assert torch.equal(copy.target, result)
