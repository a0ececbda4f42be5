"""Block sizes and device functions that several Triton kernels use, and float32 products in parts.

Tensor cores multiply bfloat16, and a float32 is exactly the sum of three, of eight bits each. Of the nine
products of the parts of two numbers the six largest are added in float32; the other three are below the last
bit. The result is as accurate as a fused multiply-add (docs/benchmarks/operators.md). An infinity, or a
number within 0.4 % of the largest, becomes nan.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from pcreg.kernels.triton.launch import launch

MIN_BLOCK = 16  # least size of a factor of tl.dot
BLOCK = tl.constexpr(1024)  # values of a program

_kept = WeakTensorKeyDictionary()  # weight -> its version and its parts


def block(channels: int, largest: int) -> int:
    """The block of channels that a program holds: a power of two from 16 to `largest`."""
    return max(MIN_BLOCK, min(power_of_two(channels), largest))


def power_of_two(number: int) -> int:
    """The least power of two >= `number` > 0; the function of Triton takes ten times as long."""
    return 1 << (number - 1).bit_length()


@cache
def processors(device: torch.device) -> int:
    """Multiprocessors of a GPU; one for the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def stages(wanted: int, bytes_each: int, device: torch.device) -> int:
    """The depth of a pipeline: `wanted`, or as much as fits into shared memory.

    Rows are gathered by indices that earlier stages load, so that only half of the stages hold rows.
    """
    if device.type != "cuda":
        return wanted
    fit = torch.cuda.get_device_properties(device).shared_memory_per_block_optin // bytes_each
    return max(1, min(wanted, 2 * fit))


@triton.jit
def three_at(at, mask, step=1, other=0.0):
    """Three numbers, `step` apart, from each of the places (...); `other` where masked."""
    return (
        tl.load(at, mask=mask, other=other),
        tl.load(at + step, mask=mask, other=other),
        tl.load(at + 2 * step, mask=mask, other=other),
    )


@triton.jit
def row_of(T, present):
    """The four numbers of the rows of motions that begin at T (...); zeros where none is present."""
    return (
        tl.load(T, mask=present, other=0.0),
        tl.load(T + 1, mask=present, other=0.0),
        tl.load(T + 2, mask=present, other=0.0),
        tl.load(T + 3, mask=present, other=0.0),
    )


def takes_parts(dtype: torch.dtype, device: torch.device) -> bool:
    """True to multiply in parts: float32 on a GPU with bfloat16 cores (from Ampere on), or interpreted."""
    if dtype != torch.float32:
        return False
    return device.type != "cuda" or torch.cuda.get_device_capability(device) >= (8, 0)


def weight_parts(weight: Tensor) -> Tensor:
    """Return the `parts` of a weight; inference mode keeps them until the weight changes or is freed."""
    if not torch.is_inference_mode_enabled() or weight.is_inference():
        return parts(weight)
    version, kept = _kept.get(weight, (None, None))
    if version != weight._version:
        kept = parts(weight)
        _kept[weight] = weight._version, kept
    return kept


def parts(values: Tensor) -> Tensor:
    """Split values (...) float32 into three bfloat16 (3, ...) that add up to them, the largest first."""
    n, values = values.numel(), values.contiguous()
    out = torch.empty((3, *values.shape), dtype=torch.bfloat16, device=values.device)
    launch(_parts, -(-n // BLOCK.value), (values, out, n), {})
    return out


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["values", "out"])
def _parts(
    values,  # (n,) float32
    out,  # (3, n) bfloat16, out
    n,
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
