"""float32 products on tensor cores that multiply bfloat16.

A float32 is exactly the sum of three bfloat16, of eight bits each. Of the nine products of the parts of two
numbers the six largest are added in float32; the other three are below the last bit. The result is as
accurate as a fused multiply-add (docs/benchmarks/operators.md). An infinity, or a number within 0.4 % of the
largest, becomes nan.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pcreg.kernels.triton.launch import launch

BLOCK = 1024  # values of a program

_kept = WeakTensorKeyDictionary()  # weight -> its version and its parts


def takes_parts(dtype: torch.dtype, device: torch.device) -> bool:
    """Say if features are multiplied in parts: float32 on a GPU with bfloat16 cores (Ampere and later)."""
    if dtype != torch.float32:
        return False
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0)


def weight_parts(weight: Tensor) -> Tensor:
    """The `parts` of a weight, which inference mode keeps until the weight changes or goes."""
    if not torch.is_inference_mode_enabled() or weight.is_inference():
        return parts(weight)
    version, kept = _kept.get(weight, (None, None))
    if version != weight._version:
        kept = parts(weight)
        _kept[weight] = weight._version, kept
    return kept


def parts(values: Tensor) -> Tensor:
    """Three bfloat16 (3, ...), the largest first, whose sum is values (...) float32."""
    n, values = values.numel(), values.contiguous()
    out = torch.empty((3, *values.shape), dtype=torch.bfloat16, device=values.device)
    launch(_parts, -(-n // BLOCK), (values, out, n), {"BLOCK": BLOCK}, None)
    return out


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["values", "out"])
def _parts(
    values,  # (n,) float32
    out,  # (3, n) bfloat16, out
    n,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    high, middle, low = parts_of(tl.load(values + at, mask=at < n, other=0.0))
    tl.store(out + at, high, mask=at < n)
    out += n.to(tl.int64)
    tl.store(out + at, middle, mask=at < n)
    tl.store(out + n.to(tl.int64) + at, low, mask=at < n)


@triton.jit
def parts_of(values):
    """`parts` within a kernel."""
    high = values.to(tl.bfloat16)
    rest = values - high.to(tl.float32)
    middle = rest.to(tl.bfloat16)
    return high, middle, (rest - middle.to(tl.float32)).to(tl.bfloat16)


@triton.jit
def add_product(total, x_parts, w_parts):
    """total (R, M) + x (R, C) @ w (C, M), both in parts.

    The smallest terms are added first, and not to the total: tensor cores cut off the bits that an addition
    shifts out, which adds up over a long sum (to 2e-5 instead of 3e-7).
    """
    x_high, x_middle, x_low = x_parts
    w_high, w_middle, w_low = w_parts
    product = tl.dot(x_low, w_high)
    product = tl.dot(x_middle, w_middle, product)
    product = tl.dot(x_high, w_low, product)
    product = tl.dot(x_middle, w_high, product)
    product = tl.dot(x_high, w_middle, product)
    return total + tl.dot(x_high, w_high, product)
