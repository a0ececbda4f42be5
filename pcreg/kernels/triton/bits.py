"""Numbers in float64 as arguments of kernels, which take float32 alone: as integers of the same bits."""

import struct

import triton
import triton.language as tl


def bits(value: float) -> int:
    """A float64, but not zero, as the integer of the same bits."""
    return struct.unpack("q", struct.pack("d", value))[0]


@triton.jit
def from_bits(value):
    """The float64 again, within a kernel."""
    return value.to(tl.int64).to(tl.float64, bitcast=True)
