"""Block sizes and device functions that several Triton kernels use."""

from functools import cache

import torch
import triton
import triton.language as tl

MIN_BLOCK = 16  # least size of a factor of tl.dot


def block(channels: int, largest: int) -> int:
    """The block of channels that a program holds: a power of two from 16 to `largest`."""
    return max(MIN_BLOCK, min(power_of_two(channels), largest))


def power_of_two(number: int) -> int:
    """The least power of two that is no less than `number` > 0; Triton's takes ten times as long."""
    return 1 << (number - 1).bit_length()


@cache
def processors(device: torch.device) -> int:
    """Multiprocessors of a GPU; one for the interpreter."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


@cache
def stages(wanted: int, bytes_each: int, device: torch.device) -> int:
    """The depth of a pipeline: `wanted`, or as much as fits into shared memory.

    Rows are gathered by indices that are loaded before, so that half of the stages hold rows.
    """
    if device.type != "cuda":
        return wanted
    fit = torch.cuda.get_device_properties(device).shared_memory_per_block_optin // bytes_each
    return max(1, min(wanted, 2 * fit))


@triton.jit
def chunk_of_program(program, k_offsets, K, CELLS: tl.constexpr, CHUNK: tl.constexpr):
    """The kernel cell and the triplets [first, last) that a program takes, at most CHUNK of them.

    Cell k owns the programs from k_offsets[k] // CHUNK + k on, which are enough for its segment
    wherever it begins: no table of programs is needed, and some programs find nothing to do.
    """
    cells = tl.arange(0, CELLS)
    owned_from = tl.load(k_offsets + cells, mask=cells < K, other=1 << 62) // CHUNK + cells
    k = tl.sum((owned_from <= program).to(tl.int32)) - 1
    start = tl.load(k_offsets + k)
    first = start + (program - (start // CHUNK + k)) * CHUNK
    return k, first, tl.minimum(first + CHUNK, tl.load(k_offsets + k + 1))


@triton.jit
def row_of(T, present):
    """The four numbers of the rows of motions that begin at T (...); zeros where none is present."""
    return (
        tl.load(T, mask=present, other=0.0),
        tl.load(T + 1, mask=present, other=0.0),
        tl.load(T + 2, mask=present, other=0.0),
        tl.load(T + 3, mask=present, other=0.0),
    )
