"""The kernel that visits neighbours, and the table by which one launch serves several searches."""

from typing import NamedTuple

import triton
import triton.language as tl

from pcreg.kernels.triton.blocks import three_at
from pcreg.kernels.triton.search.index import cells_along, lower_bound


class Row(NamedTuple):
    """A search as the kernels read it: pointers, integers, and the bits of float64, all in int64."""

    centres: int  # (N, 3)
    centre_normals: int  # (N, 3); this and the next are 0 without normals
    point_normals: int  # (P, 3), in the order of the batch
    cloud: int  # (N,) int32
    n_out: int  # N
    points: int  # (P, 3), this and the next three of a CellIndex
    keys: int  # (P,)
    order: int  # (P,)
    frame: int  # (7,)
    n_in: int  # P
    n_clouds: int
    size: int  # float64
    radius: int  # float64
    kernel_size: int
    half_width: int
    mirrored: int
    symmetric: int
    first_bucket: int  # place of this search in the buckets of all searches; likewise:
    first_offset: int  # k_offsets
    first_tile: int
    first_program: int  # of `visit`
    shares: int  # programs that share the rows of cells of a block of centres
    first_ordering: int  # program of `put_in_order`
    first_triplet: int = 0  # set once triplets are counted


# Columns of the table, the fields of Row in their order
CENTRES, CENTRE_NORMALS, POINT_NORMALS, CLOUD, N_OUT, POINTS, KEYS, ORDER = map(tl.constexpr, range(8))
FRAME, N_IN, N_CLOUDS, SIZE, RADIUS, KERNEL_SIZE, HALF_WIDTH, MIRRORED = map(tl.constexpr, range(8, 16))
SYMMETRIC, FIRST_BUCKET, FIRST_OFFSET, FIRST_TILE, FIRST_PROGRAM = map(tl.constexpr, range(16, 21))
SHARES, FIRST_ORDERING, FIRST_TRIPLET, COLUMNS = map(tl.constexpr, range(21, 25))

SEARCHES = tl.constexpr(16)  # largest number of searches in a table
BLOCK = tl.constexpr(32)  # centres of a program: one warp, as all of a program wait for the longest scan
LARGEST = tl.constexpr(1 << 62)
# Cells are chosen in float32: a relative and an absolute slack, in cells, widen the radius beyond rounding.
RELATIVE_SLACK, ABSOLUTE_SLACK = tl.constexpr(1e-4), tl.constexpr(1e-6)


@triton.jit
def row_of_program(table, n_searches, FIRST: tl.constexpr):
    """The row of the search that this program works for, and its number among the programs of that search.

    FIRST is the column of each search's first program.
    """
    search = tl.arange(0, SEARCHES)
    first = tl.load(table + search * COLUMNS + FIRST, mask=search < n_searches, other=1 << 62)
    search = tl.sum((first <= tl.program_id(0)).to(tl.int32)) - 1
    row = table + search * COLUMNS
    return row, tl.program_id(0) - tl.load(row + FIRST)


@triton.jit
def position(scanned, first):
    """The place of a triplet, int64, from that of its segment and the low 32 bits of its own."""
    return first + (scanned - first.to(tl.int32)).to(tl.int64)


# Launched with enable_fp_fusion=False, so that distances and cells are those of the CPU to the last bit.
@triton.jit(do_not_specialize=["n_searches", "steps"])
def visit(
    table,  # (searches, COLUMNS)
    n_searches,
    steps,  # of a binary search in the longest index
    buckets,  # (1 + all buckets,) int32: zeros to count in, shifted by one; or first places when filling
    k_offsets,  # of all searches, int64; read when filling
    j_out,  # (all triplets,) int32, written when filling
    FLOAT: tl.constexpr,  # dtype of the coordinates
    NORMALS: tl.constexpr,
    CUBE: tl.constexpr,
    FILL: tl.constexpr,
):
    """Count the triplets of every bucket, or fill in their j in the order in which they are met.

    Centres of a symmetric search are taken in the order of the index, and each visits the points behind it:
    a triplet is entered for both.
    """
    row, program = row_of_program(table, n_searches, FIRST_PROGRAM)
    shares, symmetric = tl.load(row + SHARES), tl.load(row + SYMMETRIC)
    order = tl.load(row + ORDER).to(tl.pointer_type(tl.int64))
    n = program // shares * BLOCK + tl.arange(0, BLOCK)
    n_out = tl.load(row + N_OUT)
    kernel_size = tl.load(row + KERNEL_SIZE).to(tl.int32)
    k_offsets += tl.load(row + FIRST_OFFSET)
    exists = n < n_out
    i = tl.where(symmetric != 0, tl.load(order + n, mask=exists & (symmetric != 0), other=0), n)
    x, y, z = three_at(tl.load(row + CENTRES).to(tl.pointer_type(FLOAT)) + 3 * i, exists)
    cloud = tl.load(row + CLOUD).to(tl.pointer_type(tl.int32))
    cloud = tl.load(cloud + i, mask=exists, other=0).to(tl.int64)

    points = tl.load(row + POINTS).to(tl.pointer_type(FLOAT))
    keys = tl.load(row + KEYS).to(tl.pointer_type(tl.int64))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    n_in, n_clouds = tl.load(row + N_IN), tl.load(row + N_CLOUDS)
    shape_x, shape_y, shape_z = cells_along(frame, 0), cells_along(frame, 1), cells_along(frame, 2)
    size = tl.load(row + SIZE).to(tl.float64, bitcast=True).to(FLOAT)
    radius = tl.load(row + RADIUS).to(tl.float64, bitcast=True)
    radius_squared = (radius * radius).to(FLOAT)
    half, mirrored = tl.load(row + HALF_WIDTH), tl.load(row + MIRRORED)
    first_bucket, first_triplet = tl.load(row + FIRST_BUCKET), tl.load(row + FIRST_TRIPLET)

    edge = tl.load(frame + 6)
    reach = (radius / edge * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK).to(tl.float32)  # in cells
    cell_x, within_x = _cell(x, tl.load(frame), edge)
    cell_y, within_y = _cell(y, tl.load(frame + 1), edge)
    cell_z, within_z = _cell(z, tl.load(frame + 2), edge)

    if NORMALS:
        centre_normals = tl.load(row + CENTRE_NORMALS).to(tl.pointer_type(FLOAT)) + 3 * i
        point_normals = tl.load(row + POINT_NORMALS).to(tl.pointer_type(FLOAT))
        normal_x, normal_y, normal_z = three_at(centre_normals, exists)

    wide = 2 * half + 1
    own_row = wide * wide // 2
    first_row = tl.where(symmetric != 0, own_row, 0)
    for place in range(first_row + program % shares, wide * wide, shares):
        step_x, step_y = place // wide - half, place % wide - half
        row_x, row_y = cell_x + step_x, cell_y + step_y
        gap_x, gap_y = _gap(within_x, step_x), _gap(within_y, step_y)
        if CUBE:
            seen = exists & (gap_x <= reach) & (gap_y <= reach)
            along_z = tl.zeros_like(gap_x) + reach
        else:
            room = reach * reach - (gap_x * gap_x + gap_y * gap_y)
            seen = exists & (room >= 0)
            along_z = tl.sqrt(tl.maximum(room, 0.0))
        low = cell_z + tl.floor(within_z - along_z).to(tl.int64)
        high = cell_z + tl.floor(within_z + along_z).to(tl.int64)
        low, high = tl.maximum(low, 0), tl.minimum(high, shape_z - 1)
        seen &= (row_x >= 0) & (row_x < shape_x) & (row_y >= 0) & (row_y < shape_y) & (low <= high)
        seen &= cloud < n_clouds
        row_key = ((cloud * shape_x + row_x) * shape_y + row_y) * shape_z
        if (symmetric != 0) & (place == own_row):
            at = n
        else:
            at = lower_bound(keys, n_in, row_key + low, seen, steps)
        last = tl.where(seen, row_key + high, -1)
        going = tl.load(keys + at, mask=seen & (at < n_in), other=LARGEST) <= last
        while tl.max(going.to(tl.int32), 0) > 0:
            near = going
            far_x, far_y, far_z = three_at(points + 3 * at, near)
            dx, dy, dz = far_x - x, far_y - y, far_z - z
            squared = (dx * dx + dy * dy) + dz * dz
            if CUBE:
                near &= tl.maximum(tl.maximum(tl.abs(dx), tl.abs(dy)), tl.abs(dz)) <= radius.to(FLOAT)
            else:
                near &= squared <= radius_squared
            j = tl.load(order + at, mask=near, other=0)
            if NORMALS:  # as pcreg.kernels.cpu.stencil.ppf_cells
                far_x, far_y, far_z = three_at(point_normals + 3 * j, near)
                distance = _sqrt_rn(squared, FLOAT)
                length = tl.where(distance > 0, distance, 1.0)
                rise = (normal_x * dx + normal_y * dy) + normal_z * dz
                fall = (far_x * dx + far_y * dy) + far_z * dz
                own = _step((_div_rn(rise, length, FLOAT) + 1.0) / 2, kernel_size, FLOAT)
                other = _step((_div_rn(-fall, length, FLOAT) + 1.0) / 2, kernel_size, FLOAT)
                whole = tl.zeros_like(distance) + radius.to(FLOAT)
                shell = _step(_div_rn(distance, whole, FLOAT), kernel_size, FLOAT)
                there = (shell * kernel_size + own) * kernel_size + other
                back = (shell * kernel_size + other) * kernel_size + own
            else:
                there = _kernel_cell(dx, size, kernel_size, FLOAT)
                there = there * kernel_size + _kernel_cell(dy, size, kernel_size, FLOAT)
                there = there * kernel_size + _kernel_cell(dz, size, kernel_size, FLOAT)
                back = kernel_size * kernel_size * kernel_size - 1 - there
            k = tl.where(mirrored != 0, back, there).to(tl.int64)
            bucket = buckets + first_bucket + k * n_out + i
            _enter(bucket, first_triplet, k_offsets + k, j, j_out, near, FILL)
            if symmetric != 0:
                k, near = back.to(tl.int64), near & (at != n)
                bucket = buckets + first_bucket + k * n_out + j
                _enter(bucket, first_triplet, k_offsets + k, i, j_out, near, FILL)
            at += 1
            going = tl.load(keys + at, mask=going & (at < n_in), other=LARGEST) <= last


@triton.jit
def _enter(bucket, first_triplet, k_offset, j, j_out, mask, FILL: tl.constexpr):
    """Count a triplet of each bucket, or write its j."""
    if FILL:
        scanned = tl.atomic_add(bucket, 1, mask=mask, sem="relaxed")
        first = first_triplet + tl.load(k_offset, mask=mask, other=0)
        tl.store(j_out + position(scanned, first), j.to(tl.int32), mask=mask)
    else:
        tl.atomic_add(bucket + 1, 1, mask=mask, sem="relaxed")


@triton.jit
def _cell(coordinate, lower, edge):
    """The cell of a coordinate, int64, and the position in it, float32 in [0, 1)."""
    position = (coordinate.to(tl.float64) - lower) / edge
    return tl.floor(position).to(tl.int64), (position - tl.floor(position)).to(tl.float32)


@triton.jit
def _gap(within, step):
    """Distance along an axis to the cell `step` away, in cells."""
    return tl.maximum(tl.maximum(step - within, within - step - 1.0), 0.0)


@triton.jit
def _sqrt_rn(squared, FLOAT: tl.constexpr):
    """The square root, rounded by IEEE 754."""
    return tl.sqrt_rn(squared) if tl.float32 == FLOAT else tl.sqrt(squared)


@triton.jit
def _div_rn(part, whole, FLOAT: tl.constexpr):
    """part / whole, rounded by IEEE 754."""
    return tl.div_rn(part, whole) if tl.float32 == FLOAT else part / whole


@triton.jit
def _step(share, kernel_size, FLOAT: tl.constexpr):
    """The number, int32, of the equal step from 0 to 1 that a share lies in."""
    step = tl.floor(share * kernel_size.to(FLOAT)).to(tl.int32)
    return tl.minimum(tl.maximum(step, 0), kernel_size - 1)


@triton.jit
def _kernel_cell(displacement, size, kernel_size, FLOAT: tl.constexpr):
    """round(displacement / size), halves to even, clamped to the kernel, counted from its face: int32."""
    cells = _div_rn(displacement, size, FLOAT)
    half_width = (kernel_size - 1) // 2
    cells = tl.minimum(tl.maximum(cells, -1.0 - half_width), 1.0 + half_width)
    # Adding and subtracting a large number rounds to the nearest integer, halves to even.
    LARGE: tl.constexpr = 1.5 * 2**23 if tl.float32 == FLOAT else 1.5 * 2**52
    rounded = ((cells + LARGE) - LARGE).to(tl.int32)
    return tl.minimum(tl.maximum(rounded, -half_width), half_width) + half_width
