"""The k nearest points to each query: each program compares a few queries with all points.

A program skips blocks of points whose bounding box is too far from all its queries. The boxes are small, as
consecutive points of a downsampled cloud lie close together.

The squared distance that encloses exactly k points is found by counting. Points on a surface need about five
counts, as the count grows with the square of the distance. Among equally far points there may be no such
distance: each count also returns the next larger distance, and every fourth step tries that distance. A
second kernel collects the points within the distance.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.blocks import three_at
from pcreg.kernels.triton.launch import launch

# Queries of a program, and points that it compares them with at a time. A program waits for its slowest
# query, and many programs hide the latency of memory.
QUERIES = tl.constexpr(4)
COUNTED, COLLECTED = 1024, 256
MAX_STEPS = tl.constexpr(64)  # of the search
# Few queries without a limit first search every 16th point: the k-th distance there bounds that of all.
EVERY_NTH, MIN_POINTS, MAX_QUERIES = 16, 1000, 4000
ROOM = 64  # times k, for the points within that bound: on average 16 k, in 2,000 queries never 64 k
TIES = 34  # room for further points at the distance of the k-th


def k_nearest(queries: Tensor, points: Tensor, k: int, max_distance: float) -> tuple[Tensor, Tensor]:
    """Return metres (Q, k) and rows (Q, k) int64 of the points (M, 3) nearest to queries (Q, 3).

    Points and queries are float64, in metres. Only points closer than `max_distance` count; of equally far
    points the first ones are taken. A missing neighbour has the distance inf and the row M.
    """
    queries, points = queries.contiguous(), points.contiguous()
    limit, is_exact, room = _limit(queries, points, max_distance), True, k + TIES
    some = points[::EVERY_NTH]
    if math.isinf(max_distance) and len(queries) <= MAX_QUERIES and len(some) >= max(k, MIN_POINTS):
        bound, is_exact, room = _kth_squared(queries, some.contiguous(), k, limit), False, ROOM * k
    else:
        bound = _kth_squared(queries, points, k, limit)
    while True:
        squared, rows, most = _within(queries, points, torch.minimum(bound, limit), room)
        if most <= room:
            break
        if not is_exact:
            bound, is_exact, room = _kth_squared(queries, points, k, torch.minimum(bound, limit)), True, k
        room = max(room, min(most, len(points)))
    rows, order = rows.sort(1)
    squared, order = squared.gather(1, order).sort(dim=1, stable=True)
    return squared[:, :k].sqrt(), rows.gather(1, order[:, :k])


def kth_distance(queries: Tensor, points: Tensor, k: int, max_distance: float) -> Tensor:
    """Return metres (Q,) to the k-th nearest point, for the arguments of `k_nearest`."""
    if len(queries) <= MAX_QUERIES:
        return k_nearest(queries, points, k, max_distance)[0][:, -1]
    queries, points = queries.contiguous(), points.contiguous()
    return _kth_squared(queries, points, k, _limit(queries, points, max_distance)).sqrt()


def _limit(queries: Tensor, points: Tensor, max_distance: float) -> Tensor:
    """Largest squared distance (Q,) of a point that counts."""
    if math.isfinite(max_distance):
        return queries.new_full((len(queries),), math.nextafter(max_distance**2, 0.0))
    both = torch.cat([queries, points])
    return (2 * (both.amax(0) - both.amin(0)).square().sum()).repeat(len(queries))


def _kth_squared(queries: Tensor, points: Tensor, k: int, limit: Tensor) -> Tensor:
    """Squared distance (Q,) to the k-th nearest point; infinity if that is beyond the limit (Q,)."""
    Q, M = len(queries), len(points)
    squared = queries.new_empty(Q)
    constants = {"POINTS": COUNTED}
    arguments = queries, points, _boxes(points, COUNTED), limit, squared, Q, M, k
    launch(_search, -(-Q // QUERIES.value), arguments, constants, num_warps=8, enable_fp_fusion=False)
    return squared


def _within(queries: Tensor, points: Tensor, limit: Tensor, room: int) -> tuple[Tensor, Tensor, int]:
    """Squared distances and rows (Q, room) of points within the limit (Q,), and the largest number of them.

    In no particular order, and padded with inf and M. Beyond the room points are counted only.
    """
    Q, M = len(queries), len(points)
    squared = queries.new_full((Q, room), torch.inf)
    rows = torch.full((Q, room), M, dtype=torch.int64, device=queries.device)
    found = torch.zeros(Q, dtype=torch.int32, device=queries.device)
    constants = {"POINTS": COLLECTED}
    arguments = queries, points, _boxes(points, COLLECTED), limit, squared, rows, found, Q, M, room
    launch(_collect, -(-Q // QUERIES.value), arguments, constants, num_warps=4, enable_fp_fusion=False)
    return squared, rows, int(found.max()) if Q else 0


def _boxes(points: Tensor, size: int) -> Tensor:
    """Lower and upper corners (blocks, 6) of each `size` points."""
    blocks = -(-len(points) // size)
    boxes = points.new_empty((blocks, 6))
    launch(_bound, blocks, (points, boxes, len(points)), {"POINTS": size})
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
    """True if no point of a block can be within the squared distance `limit` (QUERIES,) of its query."""
    box = boxes + start // POINTS * 6
    dx = tl.maximum(tl.maximum(tl.load(box) - x, x - tl.load(box + 3)), 0.0)
    dy = tl.maximum(tl.maximum(tl.load(box + 1) - y, y - tl.load(box + 4)), 0.0)
    dz = tl.maximum(tl.maximum(tl.load(box + 2) - z, z - tl.load(box + 5)), 0.0)
    squared = (dx * dx + dy * dy) + dz * dz
    # Rounding is monotonic, so this distance to the box is a lower bound
    return tl.max((squared <= limit[:, None]).to(tl.int32)) == 0


@triton.jit(
    do_not_specialize=["Q", "M", "k"],
    do_not_specialize_on_alignment=["queries", "points", "boxes", "limit", "squared"],
)
def _search(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    boxes,  # (blocks, 6), each around POINTS points
    limit,  # (Q,) float64, squared metres: points beyond do not count
    squared,  # (Q,) float64, out
    Q,
    M,
    k,
    POINTS: tl.constexpr,
):
    q, inside, x, y, z, high = _queries_of(queries, limit, Q)
    n_high, beyond = _count(points, boxes, M, x, y, z, high, high, POINTS)
    low = tl.zeros((QUERIES,), tl.float64)
    # `next` is the least distance beyond `low`
    n_low, next = _count(points, boxes, M, x, y, z, low, high, POINTS)
    high = tl.where(n_low >= k, low, high)
    open = (n_high > k) & (n_low < k) & (next < high) & inside
    step = 0
    while (tl.max(open.to(tl.int32)) > 0) & (step < MAX_STEPS):
        share = (k - n_low).to(tl.float64) / tl.maximum(n_high - n_low, 1).to(tl.float64)
        share = tl.where(step % 4 == 2, 0.5, tl.minimum(tl.maximum(share, 0.01), 0.99))
        middle = tl.where((step % 4 == 3) | (n_low == k - 1), next, low + (high - low) * share)
        n, beyond = _count(points, boxes, M, x, y, z, middle, high, POINTS)
        above, below = open & (n >= k), open & (n < k)
        high, n_high = tl.where(above, middle, high), tl.where(above, n, n_high)
        low, n_low = tl.where(below, middle, low), tl.where(below, n, n_low)
        next = tl.where(below, beyond, next)
        open = open & (n_high > k) & (next < high)
        step += 1
    farthest = tl.zeros((QUERIES, POINTS), tl.float64)
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, high, POINTS):
            _, distance = _squared(points, M, start, x, y, z, POINTS)
            farthest = tl.where(distance <= high[:, None], tl.maximum(farthest, distance), farthest)
    tl.store(squared + q, tl.where(n_high >= k, tl.max(farthest, 1), float("inf")), mask=inside)


@triton.jit(
    do_not_specialize=["Q", "M", "room"],
    do_not_specialize_on_alignment=["queries", "points", "boxes", "limit", "squared", "rows", "found"],
)
def _collect(
    queries,  # (Q, 3) float64
    points,  # (M, 3) float64
    boxes,  # (blocks, 6), each around POINTS points
    limit,  # (Q,) float64, squared metres
    squared,  # (Q, room) float64, out
    rows,  # (Q, room) int64, out
    found,  # (Q,) int32, zeros, out
    Q,
    M,
    room,
    POINTS: tl.constexpr,
):
    q, _, x, y, z, most = _queries_of(queries, limit, Q)
    counter = tl.broadcast_to((found + q)[:, None], (QUERIES, POINTS))
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, most, POINTS):
            p, distance = _squared(points, M, start, x, y, z, POINTS)
            within = distance <= most[:, None]
            at = tl.atomic_add(counter, 1, mask=within, sem="relaxed")
            to = q[:, None] * room + at
            tl.store(squared + to, distance, mask=within & (at < room))
            tl.store(rows + to, tl.broadcast_to(p[None, :], (QUERIES, POINTS)), mask=within & (at < room))


@triton.jit
def _queries_of(queries, limit, Q):
    """Rows of a program's queries, which exist, coordinates (QUERIES, 1), and limits; -1 beyond the last."""
    q = tl.program_id(0).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    inside = q < Q
    x, y, z = three_at(queries + 3 * q, inside)
    most = tl.load(limit + q, mask=inside, other=-1.0)
    return q, inside, x[:, None], y[:, None], z[:, None], most


@triton.jit
def _squared(points, M, start, x, y, z, POINTS: tl.constexpr):
    """Rows (POINTS,) and squared distances (QUERIES, POINTS) of a block; infinite beyond the last point."""
    p = start + tl.arange(0, POINTS)
    px, py, pz = three_at(points + 3 * p, p < M, other=float("inf"))
    dx, dy, dz = px[None, :] - x, py[None, :] - y, pz[None, :] - z
    return p, (dx * dx + dy * dy) + dz * dz


@triton.jit
def _count(points, boxes, M, x, y, z, squared, limit, POINTS: tl.constexpr):
    """Count points within squared distances (QUERIES,), and find the least beyond, up to the limit."""
    total = tl.zeros((QUERIES, POINTS), tl.int32)
    least = tl.full((QUERIES, POINTS), float("inf"), tl.float64)
    for start in range(0, M, POINTS):
        if not _are_far(boxes, start, x, y, z, limit, POINTS):
            _, distance = _squared(points, M, start, x, y, z, POINTS)
            within = distance <= squared[:, None]
            total += within.to(tl.int32)
            least = tl.where(within, least, tl.minimum(least, distance))
    return tl.sum(total, 1), tl.min(least, 1)
