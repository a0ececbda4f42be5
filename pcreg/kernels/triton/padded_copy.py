"""Many copies by one launch: a table tells each program what it copies, in words of 32 bits."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.transfer import moved
from pcreg.kernels.triton.blocks import power_of_two
from pcreg.kernels.triton.launch import launch

BLOCK = 1024  # words of a program
MIN_COPIES = 64  # rows of the table as the kernel loads it
# Columns of the table: addresses, the words of a row of either, those to be written, what stands behind those
# of the source, and the first program of this copy.
SOURCE, TARGET, N, M, WRITTEN, BEHIND, FIRST = map(tl.constexpr, range(7))
COLUMNS = tl.constexpr(7)


def copy_padded(copies: Sequence[tuple[Tensor, Tensor, int | None]]) -> None:
    """What pcreg.kernels.padded_copy.copy_padded says."""
    table, programs = [], 0
    for source, target, behind in copies:
        words = target.element_size() // 4
        n, m = words * source.shape[-1], words * target.shape[-1]
        written = n if behind is None else m
        table.append((source.data_ptr(), target.data_ptr(), n, m, written, behind or 0, programs))
        programs += target.numel() * words // m * -(-written // BLOCK)
    device = copies[0].target.device
    constants = {"COPIES": power_of_two(max(len(copies), MIN_COPIES)), "BLOCK": BLOCK}
    arguments = moved(torch.tensor(table), device), len(copies)
    launch(_copy, programs, arguments, constants, constants["COPIES"])


@triton.jit(do_not_specialize=["n_copies"])
def _copy(table, n_copies, COPIES: tl.constexpr, BLOCK: tl.constexpr):
    number = tl.arange(0, COPIES)
    firsts = tl.load(table + number * COLUMNS + FIRST, mask=number < n_copies, other=1 << 62)
    entry = table + (tl.sum((firsts <= tl.program_id(0)).to(tl.int32)) - 1) * COLUMNS
    n, m, written = tl.load(entry + N), tl.load(entry + M), tl.load(entry + WRITTEN)
    program, blocks = tl.program_id(0) - tl.load(entry + FIRST), tl.cdiv(written, BLOCK)
    row, at = program // blocks, program % blocks * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(entry + SOURCE).to(tl.pointer_type(tl.int32)) + row * n
    target = tl.load(entry + TARGET).to(tl.pointer_type(tl.int32)) + row * m
    values = tl.load(source + at, mask=at < n, other=0)
    values = tl.where(at < n, values, tl.load(entry + BEHIND).to(tl.int32))
    tl.store(target + at, values, mask=at < written)
