"""K-th distances and sums around queries: a program per few queries goes through all points.

Blocks of points that lie too far from all its queries it leaves out, by the boxes around them: points that
follow one another, as those of a grid do, lie together. Of many points some say how far the k-th is at most,
and those within that distance are sorted.

The distance that exactly k points are within is searched for: the number within it is counted again and
again, some five times where points lie on a surface, as a number that grows with the square of the distance
says where to try next. Where points are equally far no distance has exactly k within: so the count also says
how far the next point is, and every fourth step tries that.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.launch import launch

# Of a program, and that it compares them with at a time. A program waits for its slowest query, and many
# programs hide how long a comparison takes: so it has few.
QUERIES = 4
EVERY_NTH, MIN_POINTS = 16, 1000  # some of many points tell where to search among all
# For the distances of so many times k points: 16 times k are within, of 2,000 queries never four times that
ROOM = 64
MAX_STEPS = 64  # of the search
DISTANCE, SUMS = range(2)  # what is wanted
WIDTHS = {DISTANCE: 1, SUMS: 10}
# Of each; with few points at a time a program waits for memory again and again, ten sums leave no registers
POINTS, WARPS = {DISTANCE: 1024, SUMS: 256}, {DISTANCE: 8, SUMS: 4}
COLLECTED = 256  # points at a time where few are near


def kth_distance(queries: Tensor, points: Tensor, k: int) -> Tensor:
    """What pcreg.kernels.neighborhood says."""
    some = points[::EVERY_NTH].contiguous()
    if len(some) < max(k, MIN_POINTS):
        return _around(queries, points, k, _farthest(queries, points), DISTANCE)[:, 0].sqrt()
    most = _around(queries, some, k, _farthest(queries, some), DISTANCE)[:, 0]  # among all k-th is no farther
    squares, most_found = _within(queries, points, most, ROOM * k)
    if most_found > ROOM * k:
        return _around(queries, points, k, most, DISTANCE)[:, 0].sqrt()
    return squares.kthvalue(k, 1).values.sqrt()


def sums(queries: Tensor, points: Tensor, k: int, radius: float) -> Tensor:
    """(Q, 10), over the offsets of the up to k nearest points closer than `radius`."""
    return _around(queries, points, k, _all(queries, math.nextafter(radius**2, 0.0)), SUMS)


def _within(queries: Tensor, points: Tensor, most: Tensor, room: int) -> tuple[Tensor, int]:
    """Squared distances (Q, room) of the points within the squares `most` (Q,), and how many are at most.

    In no particular order, then infinity. Of a query that has more some are left out.
    """
    Q, M = len(queries), len(points)
    squares = queries.new_full((Q, room), torch.inf)
    found = torch.zeros(Q, dtype=torch.int32, device=queries.device)
    constants = {"QUERIES": QUERIES, "POINTS": COLLECTED}
    arguments = queries, points, _boxes(points, COLLECTED), most, squares, found, Q, M, room
    options = {"num_warps": WARPS[SUMS], "enable_fp_fusion": False}
    launch(_collect, -(-Q // QUERIES), arguments, constants, None, **options)
    return squares, int(found.max())


def _farthest(queries: Tensor, points: Tensor) -> Tensor:
    """No less than the squared distance of any two: (Q,)."""
    both = torch.cat([queries, points])
    return (2 * (both.amax(0) - both.amin(0)).square().sum()).repeat(len(queries))


def _all(queries: Tensor, limit: float) -> Tensor:
    return torch.full((len(queries),), limit, dtype=torch.float64, device=queries.device)


def _around(queries: Tensor, points: Tensor, k: int, most: Tensor, wanted: int) -> Tensor:
    Q, M = len(queries), len(points)
    out = queries.new_empty((Q, WIDTHS[wanted]))
    constants = {"WANTED": wanted, "QUERIES": QUERIES, "POINTS": POINTS[wanted], "STEPS": MAX_STEPS}
    arguments = queries, points, _boxes(points, POINTS[wanted]), most, out, Q, M, k
    options = {"num_warps": WARPS[wanted], "enable_fp_fusion": False}
    launch(_neighborhood, -(-Q // QUERIES), arguments, constants, wanted, **options)
    return out


def _boxes(points: Tensor, size: int) -> Tensor:
    """Lower and upper corners (blocks, 6) of so many points each."""
    blocks = -(-len(points) // size)
    boxes = points.new_empty((blocks, 6))
    launch(_bound, blocks, (points, boxes, len(points)), {"POINTS": size}, size)
    return boxes


@triton.jit(do_not_specialize=["M"], do_not_specialize_on_alignment=["points", "boxes"])
def _bound(
    points,  # (M, 3) float64
    boxes,  # (blocks, 6), out
    M,
    POINTS: tl.constexpr,
):
    p = tl.program_id(0) * POINTS + tl.arange(0, POINTS)
    for axis in tl.static_range(3):
        lower = tl.load(points + 3 * p + axis, mask=p < M, other=float("inf"))
        upper = tl.load(points + 3 * p + axis, mask=p < M, other=float("-inf"))
        tl.store(boxes + 6 * tl.program_id(0) + axis, tl.min(lower))
        tl.store(boxes + 6 * tl.program_id(0) + 3 + axis, tl.max(upper))


@triton.jit
def _are_far(boxes, start, x, y, z, limit, POINTS: tl.constexpr):
    """Whether no point of a block can be within the squared distance `limit` (QUERIES,) of its query.

    What is rounded keeps its order: the computed distance to a box is none beyond that to a point of it.
    """
    box = boxes + start // POINTS * 6
    dx = tl.maximum(tl.maximum(tl.load(box) - x, x - tl.load(box + 3)), 0.0)
    dy = tl.maximum(tl.maximum(tl.load(box + 1) - y, y - tl.load(box + 4)), 0.0)
    dz = tl.maximum(tl.maximum(tl.load(box + 2) - z, z - tl.load(box + 5)), 0.0)
    squared = (dx * dx + dy * dy) + dz * dz
    return tl.max((squared <= limit[:, None]).to(tl.int32)) == 0


@triton.jit(
    do_not_specialize=["Q", "M", "k"],
    do_not_specialize_on_alignment=["queries", "points", "boxes", "most", "out"],
)
def _neighborhood(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    boxes,  # around POINTS of them each
    most,  # (Q,) float64, squared metres: nothing beyond counts
    out,  # (Q, 1), or (Q, 10) for sums; float64
    Q,
    M,
    k,
    WANTED: tl.constexpr,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
    STEPS: tl.constexpr,
):
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    inside = q < Q
    x = tl.load(queries + 3 * q, mask=inside, other=0.0)[:, None]
    y = tl.load(queries + 3 * q + 1, mask=inside, other=0.0)[:, None]
    z = tl.load(queries + 3 * q + 2, mask=inside, other=0.0)[:, None]
    high = tl.load(most + q, mask=inside, other=-1.0)  # what lies beyond is not looked at
    n_high, beyond = _count(points, boxes, M, x, y, z, high, high, QUERIES, POINTS)
    low = tl.zeros((QUERIES,), tl.float64)
    # `next` is the least beyond `low`
    n_low, next = _count(points, boxes, M, x, y, z, low, high, QUERIES, POINTS)
    high = tl.where(n_low >= k, low, high)
    open = (n_high > k) & (n_low < k) & (next < high) & inside
    step = 0
    while (tl.max(open.to(tl.int32)) > 0) & (step < STEPS):
        share = (k - n_low).to(tl.float64) / tl.maximum(n_high - n_low, 1).to(tl.float64)
        share = tl.where(step % 4 == 2, 0.5, tl.minimum(tl.maximum(share, 0.01), 0.99))
        middle = tl.where((step % 4 == 3) | (n_low == k - 1), next, low + (high - low) * share)
        n, beyond = _count(points, boxes, M, x, y, z, middle, high, QUERIES, POINTS)
        above, below = open & (n >= k), open & (n < k)
        high, n_high = tl.where(above, middle, high), tl.where(above, n, n_high)
        low, n_low = tl.where(below, middle, low), tl.where(below, n, n_low)
        next = tl.where(below, beyond, next)
        open = open & (n_high > k) & (next < high)
        step += 1
    if WANTED == 0:
        farthest = tl.zeros((QUERIES, POINTS), tl.float64)
        for start in range(0, M, POINTS):
            if not _are_far(boxes, start, x, y, z, high, POINTS):
                _, _, _, distance = _offsets(points, M, start, x, y, z, POINTS)
                farthest = tl.where(distance <= high[:, None], tl.maximum(farthest, distance), farthest)
        tl.store(out + q, tl.max(farthest, 1), mask=inside)
    else:
        _store_sums(points, boxes, M, x, y, z, high, out, q, inside, QUERIES, POINTS)


@triton.jit(
    do_not_specialize=["Q", "M", "room"],
    do_not_specialize_on_alignment=["queries", "points", "boxes", "most", "squares", "found"],
)
def _collect(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    boxes,  # around POINTS of them each
    most,  # (Q,) float64, squared metres
    squares,  # (Q, room) float64, out
    found,  # (Q,) int32, zeros, out
    Q,
    M,
    room,
    QUERIES: tl.constexpr,
    POINTS: tl.constexpr,
):
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    inside = q < Q
    x = tl.load(queries + 3 * q, mask=inside, other=0.0)[:, None]
    y = tl.load(queries + 3 * q + 1, mask=inside, other=0.0)[:, None]
    z = tl.load(queries + 3 * q + 2, mask=inside, other=0.0)[:, None]
    limit = tl.load(most + q, mask=inside, other=-1.0)
    counter = tl.broadcast_to((found + q)[:, None], (QUERIES, POINTS))
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, limit, POINTS):
            _, _, _, distance = _offsets(points, M, start, x, y, z, POINTS)
            within = distance <= limit[:, None]
            at = tl.atomic_add(counter, 1, mask=within, sem="relaxed")
            tl.store(squares + q[:, None] * room + at, distance, mask=within & (at < room))


@triton.jit
def _offsets(points, M, start, x, y, z, POINTS: tl.constexpr):
    """Of some points to the queries, and their squares (QUERIES, POINTS); infinite beyond the last point."""
    p = start + tl.arange(0, POINTS)
    dx = tl.load(points + 3 * p, mask=p < M, other=float("inf"))[None, :] - x
    dy = tl.load(points + 3 * p + 1, mask=p < M, other=float("inf"))[None, :] - y
    dz = tl.load(points + 3 * p + 2, mask=p < M, other=float("inf"))[None, :] - z
    return dx, dy, dz, (dx * dx + dy * dy) + dz * dz


@triton.jit
def _count(points, boxes, M, x, y, z, squared, limit, QUERIES: tl.constexpr, POINTS: tl.constexpr):
    """How many points lie within the squared distances (QUERIES,), and the least beyond, up to the limit."""
    total = tl.zeros((QUERIES, POINTS), tl.int32)
    least = tl.full((QUERIES, POINTS), float("inf"), tl.float64)
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, limit, POINTS):
            _, _, _, distance = _offsets(points, M, start, x, y, z, POINTS)
            within = distance <= squared[:, None]
            total += within.to(tl.int32)
            least = tl.where(within, least, tl.minimum(least, distance))
    return tl.sum(total, 1), tl.min(least, 1)


@triton.jit
def _store_sums(
    points, boxes, M, x, y, z, limit, out, q, inside, QUERIES: tl.constexpr, POINTS: tl.constexpr
):
    zero = tl.zeros((QUERIES, POINTS), tl.float64)
    n, sx, sy, sz, sxx, sxy, sxz, syy, syz, szz = zero, zero, zero, zero, zero, zero, zero, zero, zero, zero
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, limit, POINTS):
            dx, dy, dz, distance = _offsets(points, M, start, x, y, z, POINTS)
            within = distance <= limit[:, None]
            dx, dy, dz = tl.where(within, dx, 0.0), tl.where(within, dy, 0.0), tl.where(within, dz, 0.0)
            n += tl.where(within, 1.0, 0.0)
            sx, sy, sz = sx + dx, sy + dy, sz + dz
            sxx, sxy, sxz = sxx + dx * dx, sxy + dx * dy, sxz + dx * dz
            syy, syz, szz = syy + dy * dy, syz + dy * dz, szz + dz * dz
    tl.store(out + 10 * q, tl.sum(n, 1), mask=inside)
    tl.store(out + 10 * q + 1, tl.sum(sx, 1), mask=inside)
    tl.store(out + 10 * q + 2, tl.sum(sy, 1), mask=inside)
    tl.store(out + 10 * q + 3, tl.sum(sz, 1), mask=inside)
    tl.store(out + 10 * q + 4, tl.sum(sxx, 1), mask=inside)
    tl.store(out + 10 * q + 5, tl.sum(sxy, 1), mask=inside)
    tl.store(out + 10 * q + 6, tl.sum(sxz, 1), mask=inside)
    tl.store(out + 10 * q + 7, tl.sum(syy, 1), mask=inside)
    tl.store(out + 10 * q + 8, tl.sum(syz, 1), mask=inside)
    tl.store(out + 10 * q + 9, tl.sum(szz, 1), mask=inside)
