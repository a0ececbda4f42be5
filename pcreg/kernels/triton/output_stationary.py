"""MVMR with one program per tile of output rows: no atomics, every sum in a fixed order.

For each kernel cell a program multiplies one row per bucket by W[k] and adds in registers. Buckets of several
points are summed beforehand in the program's scratch memory, so that the main loop has one load per row and
can be pipelined. These sums are rounded to the dtype of the features; in float16 they must be below 65504.
"""

from dataclasses import dataclass
from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.epilogue import NOTHING, Epilogue
from pcreg.kernels.tiles import ROWS as TILE
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton.blocks import (
    add_product,
    block,
    parts_of,
    processors,
    stages,
    takes_parts,
    weight_parts,
)
from pcreg.kernels.triton.epilogue import VECTORS, apply_epilogue, epilogue_arguments, reduce_parts
from pcreg.kernels.triton.launch import aligned, launch

ROWS = tl.constexpr(TILE)
MIN_CELLS = 3  # kernel cells of a program, where programs share the cells of a tile
MIN_SHARES = 4  # with fewer shares of the cells, the launch that adds up their sums does not pay
WARPS = 4
REGISTERS = 2**16  # of a multiprocessor


def mvmr(
    features: Tensor, weight: Tensor, triplets: Triplets, split: bool = True, epilogue: Epilogue = NOTHING
) -> Tensor:
    """features (N_in, C), weight (K, 1, C, M) -> (N_out, M), row i the sum of W[k] x[j].

    With few tiles `split` shares the columns and kernel cells of each among several programs; the last bits
    of a row then depend on the number of rows.
    """
    (K, _, C, M), tiles, n_out = weight.shape, triplets.tiles, triplets.n_out
    n_tiles = tiles.tile_offsets.shape[0] - 1
    if n_out == 0 or M == 0:
        return features.new_empty(n_out, M)
    plan = _plan(C, M, features.dtype, features.device)
    weight = weight_parts(weight) if plan.in_parts else aligned(weight)
    column_shares, cell_shares = _shares(n_tiles, K, plan) if split else (1, 1)
    shares = column_shares * cell_shares
    # Only as many programs as run at once, so that their scratch memory does not grow with the cloud.
    n_programs = min(n_tiles * shares, plan.max_programs // shares * shares)
    sums = features.new_empty((n_programs, tiles.max_shared, C))
    whole = cell_shares == 1
    dtype = features.dtype if whole else torch.float32
    out = features.new_empty((cell_shares, n_out, M), dtype=dtype)
    ending = epilogue_arguments(epilogue, out, apply=whole)
    counts = n_out, n_tiles, tiles.max_shared, K, column_shares, cell_shares, plan.deep, plan.blocks
    arguments = aligned(features), weight, out, sums, triplets.j, *tiles.tensors(), *ending, *counts
    constants = plan.constants | {"SHARED": shares > 1, "EPILOGUE": epilogue is not NOTHING}
    launch(_output_stationary, n_programs, arguments, constants, **plan.options)
    return out[0] if whole else reduce_parts(out, features.dtype, epilogue)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Launch settings of one kind of convolution."""

    constants: dict[str, object]
    options: dict[str, int]
    in_parts: bool
    deep: int  # products for the channels of one kernel cell
    blocks: int  # of columns
    processors: int
    max_programs: int


@cache
def _plan(C: int, M: int, dtype: torch.dtype, device: torch.device) -> _Plan:
    wide = dtype == torch.float32
    in_parts = takes_parts(dtype, device)
    columns = block(M, 64 if wide else 128)
    depth = block(C, 64 if wide else 32)
    # Measured on an H200. Deep pipelines hide the gathers, but with few columns they cost occupancy.
    wanted = 2 if wide else (4 if columns <= 32 else 7)
    weight_bytes = columns * (6 if in_parts else dtype.itemsize)
    # A wide float32 kernel takes a second to compile, so one kernel takes the numbers of channels as
    # arguments. In half precision such a kernel runs 1.2 times as long.
    general = in_parts and C % depth == 0 and M % columns == 0 and min(depth, columns) == 64
    constants = {
        "FIXED_C": 0 if general else C,
        "FIXED_M": 0 if general else M,
        "DEPTH": depth,
        "COLUMNS": columns,
        "SUMMED": 64 if general else 128 if C >= 128 else 64 if C >= 64 else 16,
        "IN_PARTS": in_parts,
        "STAGES": stages(wanted, depth * (TILE * dtype.itemsize + weight_bytes), device),
    }
    n, at_once = processors(device), 256 // max(columns, 32)
    options = {"num_warps": WARPS}
    if not wide:  # float32 needs all registers
        options["maxnreg"] = min(255, REGISTERS // (32 * WARPS * at_once))
    deep, blocks = -(-C // depth), -(-M // columns)
    return _Plan(constants, options, in_parts, deep, blocks, n, n * at_once)


def _shares(n_tiles: int, K: int, plan: _Plan) -> tuple[int, int]:
    """Numbers of programs that share the blocks of columns of each tile, and its kernel cells."""
    idle = plan.processors // n_tiles
    if idle < 2:
        return 1, 1
    cells = min(idle // plan.blocks, K // MIN_CELLS)
    return plan.blocks, cells if cells >= MIN_SHARES else 1


COUNTS = ["column_shares", "cell_shares", "deep", "blocks"]


# Not specialized, as sizes of clouds vary and each variant would be compiled. Tiles need not be aligned.
@triton.jit(
    do_not_specialize=["applied", "n_out", "n_tiles", "max_shared", "K", *COUNTS],
    do_not_specialize_on_alignment=["j", "source", "shared_first", "shared_size", "tile_offsets", *VECTORS],
)
def _output_stationary(
    features,  # (N_in, C)
    weight,  # (K, C, M); three of them IN_PARTS
    out,  # (cell_shares, N_out, M)
    sums,  # (programs, max_shared, C), scratch
    j,  # (T,)
    source,  # (K, N_out) and the rest of Tiles
    shared_first,  # (Q,)
    shared_size,  # (Q,)
    tile_offsets,  # (tiles + 1,)
    mean,  # of the epilogue, like the next six
    variance,
    scale,
    shift,
    epsilon,
    residual,
    applied,
    n_out,
    n_tiles,
    max_shared,
    K,
    column_shares,
    cell_shares,
    deep,
    blocks,
    FIXED_C: tl.constexpr,  # 0: C and M are multiples of DEPTH and COLUMNS, given by `deep` and `blocks`
    FIXED_M: tl.constexpr,
    DEPTH: tl.constexpr,  # of one product
    COLUMNS: tl.constexpr,
    SUMMED: tl.constexpr,  # columns of one sum of a shared bucket
    IN_PARTS: tl.constexpr,
    STAGES: tl.constexpr,
    SHARED: tl.constexpr,  # a tile, among column_shares x cell_shares programs
    EPILOGUE: tl.constexpr,
):
    C, M = deep * DEPTH, blocks * COLUMNS
    if FIXED_C > 0:
        C, M = FIXED_C, FIXED_M
        deep, blocks = (FIXED_C + DEPTH - 1) // DEPTH, (FIXED_M + COLUMNS - 1) // COLUMNS
    NARROW: tl.constexpr = (FIXED_C > 0) & (FIXED_C < 16)  # one product takes several kernel cells
    sums += tl.program_id(0).to(tl.int64) * max_shared * C
    steps = (K * C + DEPTH - 1) // DEPTH if NARROW else K * deep
    part_size = tl.cast(K, tl.int64) * (C * M)
    shares, column_share, column_step, first_step, last_step = 1, 0, 1, 0, steps
    if SHARED:  # otherwise constants, as variables these take half of the registers
        shares, column_step = column_shares * cell_shares, column_shares
        column_share = tl.program_id(0) % column_shares
        cell_share = tl.program_id(0) % shares // column_shares
        first_step = steps * cell_share // cell_shares
        last_step = steps * (cell_share + 1) // cell_shares
        out += tl.cast(cell_share, tl.int64) * n_out * M
    for tile in tl.range(tl.program_id(0) // shares, n_tiles, tl.num_programs(0) // shares, num_stages=1):
        first, last = tl.load(tile_offsets + tile), tl.load(tile_offsets + tile + 1)
        _sum_shared(features, sums, j, shared_first, shared_size, first, last, C, SUMMED)
        tl.debug_barrier()  # all of the sums are written
        rows = tile * ROWS + tl.arange(0, ROWS)
        row = tl.minimum(rows, n_out - 1)
        for part in tl.range(column_share, blocks, column_step, num_stages=1):
            columns = part * COLUMNS + tl.arange(0, COLUMNS)
            total = tl.zeros((ROWS, COLUMNS), tl.float32)
            for step in tl.range(first_step, last_step, num_stages=STAGES):
                if NARROW:
                    entry = step * DEPTH + tl.arange(0, DEPTH)
                    k, c = entry // C, entry % C
                    exists = k < K
                    at = tl.load(source + tl.minimum(k, K - 1).to(tl.int64)[None, :] * n_out + row[:, None])
                    present = (at != -1) & exists[None, :]
                    base = _rows(at, features, sums, C)
                else:
                    k, c = step // deep, step % deep * DEPTH + tl.arange(0, DEPTH)
                    exists = c < C
                    at = tl.load(source + tl.cast(k, tl.int64) * n_out + row)
                    present = (at != -1)[:, None]
                    if FIXED_C % DEPTH != 0:
                        present = present & exists[None, :]
                    base = _rows(at, features, sums, C)[:, None]
                x = tl.load(base + c[None, :], mask=present, other=0.0)
                at_weight = weight + (k * (C * M) + c * M)[:, None] + columns[None, :]
                inside = exists[:, None] & (columns < M)[None, :]
                if IN_PARTS:
                    w_high = tl.load(at_weight, mask=inside, other=0.0)
                    w_middle = tl.load(at_weight + part_size, mask=inside, other=0.0)
                    w_low = tl.load(at_weight + 2 * part_size, mask=inside, other=0.0)
                    total = add_product(total, parts_of(x), (w_high, w_middle, w_low))
                else:
                    w = tl.load(at_weight, mask=inside, other=0.0)
                    total = tl.dot(x, w, total, input_precision="ieee")
            mask = (rows < n_out)[:, None] & (columns < M)[None, :]
            at_row = row.to(tl.int64)
            if EPILOGUE:
                total = apply_epilogue(
                    total, at_row, columns, mask, mean, variance, scale, shift, epsilon, residual, applied, M
                )
            at_out = at_row[:, None] * M + columns[None, :]
            tl.store(out + at_out, total.to(out.dtype.element_ty), mask=mask)
        tl.debug_barrier()  # all of the sums are read


@triton.jit
def _rows(at, features, sums, width):
    """Pointers to the rows that Tiles.source names: features of a point or the sum of a shared bucket."""
    return tl.where(at >= 0, features + at.to(tl.int64) * width, sums + (-2 - at).to(tl.int64) * width)


@triton.jit
def _sum_shared(features, sums, j, shared_first, shared_size, first, last, width, COLUMNS: tl.constexpr):
    """sums[q - first] = the sum over bucket q of features[j], for the buckets [first, last) of a tile."""
    BUCKETS: tl.constexpr = 64
    for low in tl.range(first, last, BUCKETS, num_stages=1):
        bucket = low + tl.arange(0, BUCKETS)
        inside = tl.minimum(bucket, last - 1)
        start = tl.load(shared_first + inside)
        end = start + tl.load(shared_size + inside)
        # A shared bucket has two points at least.
        one = tl.load(j + start).to(tl.int64)[:, None] * width
        two = tl.load(j + start + 1).to(tl.int64)[:, None] * width
        most = tl.max(end - start)
        for column in tl.range(0, width, COLUMNS, num_stages=1):
            c = (column + tl.arange(0, COLUMNS))[None, :]
            total = tl.load(features + one + c, mask=c < width, other=0.0).to(tl.float32)
            total += tl.load(features + two + c, mask=c < width, other=0.0)
            for r in tl.range(2, most, num_stages=1):
                at = tl.load(j + tl.minimum(start + r, end - 1)).to(tl.int64)[:, None] * width
                more = (start[:, None] + r < end[:, None]) & (c < width)
                total += tl.load(features + at + c, mask=more, other=0.0)
            tl.store(
                sums + (bucket - first)[:, None] * width + c,
                total.to(features.dtype.element_ty),
                mask=(bucket < last)[:, None] & (c < width),
            )
