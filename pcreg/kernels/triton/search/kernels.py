"""The kernels of kernels/triton/search/run.py: count, fill in and order the triplets of several searches."""

import triton
import triton.language as tl

from pcreg.kernels.triton.search.index import cells_along, lower_bound
from pcreg.kernels.triton.search.kernel_cells import (
    div_rn,
    kernel_cell,
    load_vec3,
    sqrt_rn,
    step_of,
)
from pcreg.kernels.triton.search.table import (
    CENTRE_NORMALS,
    CENTRES,
    CLOUD,
    COLUMNS,
    FIRST_BUCKET,
    FIRST_OFFSET,
    FIRST_ORDERING,
    FIRST_PROGRAM,
    FIRST_SOURCE,
    FIRST_TRIPLET,
    FRAME,
    HALF_WIDTH,
    KERNEL_SIZE,
    LOOKUP,
    MIRRORED,
    N_CLOUDS,
    N_IN,
    N_OUT,
    ORDER,
    POINT_NORMALS,
    POINTS,
    RADIUS,
    SHARES,
    SIZE,
    SYMMETRIC,
    position,
    search_of_program,
)

LARGEST = tl.constexpr(1 << 62)
NO_ROW = tl.constexpr(2**31 - 1)  # behind all rows
# Cells are chosen in float32, by a radius that is wider by more than that rounds: by a share, and in cells.
RELATIVE_SLACK, ABSOLUTE_SLACK = tl.constexpr(1e-4), tl.constexpr(1e-6)


# Launched with enable_fp_fusion=False: distances are to the last bit those of the CPU.
@triton.jit(do_not_specialize=["n_searches", "steps", "capacity"])
def visit(
    table,  # (searches, COLUMNS)
    n_searches,
    steps,  # of a binary search in the longest index
    buckets,  # (1 + all buckets,) int32: zeros that are counted up behind each, or where each begins
    k_offsets,  # of all searches, int64; read when filling
    j_out,  # (all triplets,) int32, written when filling
    capacity,  # of j_out; a search that has more triplets finds none
    SEARCHES: tl.constexpr,
    BLOCK: tl.constexpr,  # centres
    FLOAT: tl.constexpr,  # dtype of the coordinates
    NORMALS: tl.constexpr,
    TABLE: tl.constexpr,  # the indices are CellTables
    FILL: tl.constexpr,
):
    """Count the triplets of every bucket, or fill in their j in the order in which they are met.

    Where a search is symmetric its centres are taken in the order of the index, and each looks at those
    behind it: what it finds counts for both.
    """
    search, program = search_of_program(table, n_searches, FIRST_PROGRAM, SEARCHES)
    row = table + search * COLUMNS
    shares, symmetric = tl.load(row + SHARES), tl.load(row + SYMMETRIC)
    order = tl.load(row + ORDER).to(tl.pointer_type(tl.int64))
    n = program // shares * BLOCK + tl.arange(0, BLOCK)
    n_out = tl.load(row + N_OUT)
    kernel_size = tl.load(row + KERNEL_SIZE).to(tl.int32)
    k_offsets += tl.load(row + FIRST_OFFSET)
    exists = n < n_out
    if FILL:
        exists &= tl.load(k_offsets + kernel_size * kernel_size * kernel_size) <= capacity
    i = tl.where(symmetric != 0, tl.load(order + n, mask=exists & (symmetric != 0), other=0), n)
    centres = tl.load(row + CENTRES).to(tl.pointer_type(FLOAT)) + 3 * i
    x = tl.load(centres, mask=exists, other=0.0)
    y = tl.load(centres + 1, mask=exists, other=0.0)
    z = tl.load(centres + 2, mask=exists, other=0.0)
    cloud = tl.load(row + CLOUD)
    cloud = tl.load(cloud.to(tl.pointer_type(tl.int32)) + i, mask=exists & (cloud != 0), other=0).to(tl.int64)

    points = tl.load(row + POINTS).to(tl.pointer_type(FLOAT))
    lookup = tl.load(row + LOOKUP).to(tl.pointer_type(tl.int32 if TABLE else tl.int64))
    frame = tl.load(row + FRAME).to(tl.pointer_type(tl.float64))
    n_in, n_clouds = tl.load(row + N_IN), tl.load(row + N_CLOUDS)
    shape_x, shape_y, shape_z = cells_along(frame, 0), cells_along(frame, 1), cells_along(frame, 2)
    size = tl.load(row + SIZE).to(tl.float64, bitcast=True).to(FLOAT)
    radius = tl.load(row + RADIUS).to(tl.float64, bitcast=True)
    radius_squared = (radius * radius).to(FLOAT)
    half, mirrored = tl.load(row + HALF_WIDTH), tl.load(row + MIRRORED)
    first_bucket, first_triplet = tl.load(row + FIRST_BUCKET), tl.load(row + FIRST_TRIPLET)

    edge = tl.load(frame + 6)
    radius_in_cells = (radius / edge * (1 + RELATIVE_SLACK) + ABSOLUTE_SLACK).to(tl.float32)
    cell_x, within_x = _cell(x, tl.load(frame), edge)
    cell_y, within_y = _cell(y, tl.load(frame + 1), edge)
    cell_z, within_z = _cell(z, tl.load(frame + 2), edge)

    if NORMALS:
        centre_normals = tl.load(row + CENTRE_NORMALS).to(tl.pointer_type(FLOAT)) + 3 * i
        point_normals = tl.load(row + POINT_NORMALS).to(tl.pointer_type(FLOAT))
        normal_x, normal_y, normal_z = load_vec3(centre_normals, exists)

    wide = 2 * half + 1
    own_row = wide * wide // 2
    first_row = tl.where(symmetric != 0, own_row, 0)
    for place in range(first_row + program % shares, wide * wide, shares):
        step_x, step_y = place // wide - half, place % wide - half
        row_x, row_y = cell_x + step_x, cell_y + step_y
        gap_x, gap_y = _gap(within_x, step_x), _gap(within_y, step_y)
        room = radius_in_cells * radius_in_cells - (gap_x * gap_x + gap_y * gap_y)
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
        elif TABLE:
            at = tl.load(lookup + row_key + low, mask=seen, other=0).to(tl.int64)
        else:
            at = lower_bound(lookup, n_in, row_key + low, seen, steps)
        if TABLE:
            end = tl.load(lookup + row_key + high + 1, mask=seen, other=0)
            going = seen & (at < end)
        else:
            last = tl.where(seen, row_key + high, -1)
            going = tl.load(lookup + at, mask=seen & (at < n_in), other=LARGEST) <= last
        while tl.max(going.to(tl.int32), 0) > 0:
            near = going
            dx = tl.load(points + 3 * at, mask=near, other=0.0) - x
            dy = tl.load(points + 3 * at + 1, mask=near, other=0.0) - y
            dz = tl.load(points + 3 * at + 2, mask=near, other=0.0) - z
            squared = (dx * dx + dy * dy) + dz * dz
            near &= squared <= radius_squared
            j = tl.load(order + at, mask=near, other=0)
            if NORMALS:
                far_x, far_y, far_z = load_vec3(point_normals + 3 * j, near)
                distance = sqrt_rn(squared, FLOAT)
                length = tl.where(distance > 0, distance, 1.0)
                rise = (normal_x * dx + normal_y * dy) + normal_z * dz
                fall = (far_x * dx + far_y * dy) + far_z * dz
                own = step_of((div_rn(rise, length, FLOAT) + 1.0) / 2, kernel_size, FLOAT)
                other = step_of((div_rn(-fall, length, FLOAT) + 1.0) / 2, kernel_size, FLOAT)
                whole = tl.zeros_like(distance) + radius.to(FLOAT)
                shell = step_of(div_rn(distance, whole, FLOAT), kernel_size, FLOAT)
                there = (shell * kernel_size + own) * kernel_size + other
                back = (shell * kernel_size + other) * kernel_size + own
            else:
                there = kernel_cell(dx, size, kernel_size, FLOAT)
                there = there * kernel_size + kernel_cell(dy, size, kernel_size, FLOAT)
                there = there * kernel_size + kernel_cell(dz, size, kernel_size, FLOAT)
                back = kernel_size * kernel_size * kernel_size - 1 - there
            k = tl.where(mirrored != 0, back, there).to(tl.int64)
            bucket = buckets + first_bucket + k * n_out + i
            _enter(bucket, first_triplet, k_offsets + k, j, j_out, near, FILL)
            if symmetric != 0:
                k, near = back.to(tl.int64), near & (at != n)
                bucket = buckets + first_bucket + k * n_out + j
                _enter(bucket, first_triplet, k_offsets + k, i, j_out, near, FILL)
            at += 1
            if TABLE:
                going = at < end
            else:
                going = tl.load(lookup + at, mask=going & (at < n_in), other=LARGEST) <= last


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
    """The cell of a coordinate, int64, and where it lies in it, float32 in [0, 1)."""
    position = (coordinate.to(tl.float64) - lower) / edge
    return tl.floor(position).to(tl.int64), (position - tl.floor(position)).to(tl.float32)


@triton.jit
def _gap(within, step):
    """How far along an axis the cell `step` away begins, in cells."""
    return tl.maximum(tl.maximum(step - within, within - step - 1.0), 0.0)


@triton.jit(do_not_specialize=["n_searches"])
def put_in_order(
    table,
    n_searches,
    buckets,  # (1 + all buckets,), where each ends
    k_offsets,
    unordered,  # (all triplets,) int32: j, in any order within a bucket
    i_out,  # (all triplets,) int32, out, like the next
    j_out,
    source,  # of the Tiles of all searches, out where a bucket is not shared
    SEARCHES: tl.constexpr,
    BUCKETS: tl.constexpr,
    EMPTY: tl.constexpr,
):
    """Write i, and j in ascending order within each bucket."""
    search, program = search_of_program(table, n_searches, FIRST_ORDERING, SEARCHES)
    row = table + search * COLUMNS
    n_out = tl.load(row + N_OUT)
    blocks = tl.cdiv(n_out, BUCKETS)
    k, i = program // blocks, program % blocks * BUCKETS + tl.arange(0, BUCKETS)
    exists = i < n_out
    bucket = tl.load(row + FIRST_BUCKET) + k * n_out + i
    first = tl.load(row + FIRST_TRIPLET) + tl.load(k_offsets + tl.load(row + FIRST_OFFSET) + k)
    begin = tl.load(buckets + bucket - 1, mask=exists & (bucket > 0), other=0)
    size = tl.load(buckets + bucket, mask=exists, other=0) - begin
    size = tl.where(exists, size, 0)
    begin = position(begin, first)
    # Nearly all buckets have up to four points, which are loaded together and exchanged pairwise.
    a = tl.load(unordered + begin, mask=size > 0, other=NO_ROW)
    b = tl.load(unordered + begin + 1, mask=size > 1, other=NO_ROW)
    c = tl.load(unordered + begin + 2, mask=size > 2, other=NO_ROW)
    d = tl.load(unordered + begin + 3, mask=size > 3, other=NO_ROW)
    first_source = tl.load(row + FIRST_SOURCE)
    if first_source >= 0:
        alone = tl.where(size == 1, a, EMPTY)
        tl.store(source + first_source + k * n_out + i, alone, mask=exists & (size < 2))
    a, b = tl.minimum(a, b), tl.maximum(a, b)
    c, d = tl.minimum(c, d), tl.maximum(c, d)
    a, c = tl.minimum(a, c), tl.maximum(a, c)
    b, d = tl.minimum(b, d), tl.maximum(b, d)
    b, c = tl.minimum(b, c), tl.maximum(b, c)
    few = size <= 4
    _write(i_out, j_out, begin, i, a, few & (size > 0))
    _write(i_out, j_out, begin + 1, i, b, few & (size > 1))
    _write(i_out, j_out, begin + 2, i, c, few & (size > 2))
    _write(i_out, j_out, begin + 3, i, d, few & (size > 3))
    size = tl.where(few, 0, size)
    most = tl.max(size)
    for n in range(most):
        j = tl.load(unordered + begin + n, mask=n < size, other=0)
        rank = tl.zeros_like(size)
        for other in range(most):
            smaller = tl.load(unordered + begin + other, mask=other < size, other=0) < j
            rank += (smaller & (other < size)).to(tl.int32)
        _write(i_out, j_out, begin + rank, i, j, n < size)


@triton.jit
def _write(i_out, j_out, at, i, j, mask):
    tl.store(i_out + at, i.to(tl.int32), mask=mask)
    tl.store(j_out + at, j, mask=mask)
