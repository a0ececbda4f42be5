"""First intersections of rays: a program for a few rays goes through the solids of their group."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from pcreg.kernels.triton.blocks import row_of, three_at
from pcreg.kernels.triton.launch import launch

RAYS = tl.constexpr(64)  # of a program (one warp), which stops when no solid left can be nearer than its hits
BOX, BALL, ROD = map(tl.constexpr, range(3))  # numbers of pcreg.kernels.raycast.Shape
NEAREST = tl.constexpr(1e-3)  # metres: pcreg.kernels.raycast.MIN_DISTANCE
SOLIDS = ["shapes", "T_unit_world", "starts", "solids", "depths"]
POINTERS = ["origins", "directions", "far", *SOLIDS, "distance", "cosine", "met"]
NAN = tl.constexpr(tl.PropagateNan.ALL)  # NaN is a miss and must remain one


def first_hits(
    origins: Tensor,
    directions: Tensor,
    far: Tensor,
    shapes: Tensor,
    T_unit_world: Tensor,
    group: Tensor,
    solid: Tensor,
    depth: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Distance, cosine and solid of the Hits, as in pcreg.kernels.raycast.

    Results differ from those of the CPU by rounding, and by the choice between equally near solids.
    """
    G, R, _ = directions.shape
    starts = torch.searchsorted(group, torch.arange(G + 1, device=group.device))
    distance, cosine = directions.new_empty(G, R), directions.new_empty(G, R)
    met = torch.empty(G, R, dtype=torch.int64, device=directions.device)
    rays = origins.contiguous(), directions.contiguous(), far.contiguous()
    solids = shapes, T_unit_world.contiguous(), starts, solid, depth
    blocks = -(-R // RAYS.value)
    arguments = *rays, *solids, distance, cosine, met, R, blocks
    constants = {"PER_RAY": origins.shape[1] == R}
    launch(_first_hits, G * blocks, arguments, constants, num_warps=1, enable_fp_fusion=False)
    return distance, cosine, met


@triton.jit(do_not_specialize=["R", "blocks"], do_not_specialize_on_alignment=POINTERS)
def _first_hits(
    origins,  # (G, R, 3) float32 if PER_RAY, else (G, 1, 3)
    directions,  # (G, R, 3) float32
    far,  # (G,) float32
    shapes,  # (P,) int64
    T_unit_world,  # (P, 3, 4) float32
    starts,  # (G + 1,) int64: the first place of each group in the next two
    solids,  # (N,) int64
    depths,  # (N,) float32
    distance,  # (G, R) float32, out, like the next two
    cosine,  # (G, R) float32
    met,  # (G, R) int64
    R,
    blocks,
    PER_RAY: tl.constexpr,
):
    group = (tl.program_id(0) // blocks).to(tl.int64)
    ray = tl.program_id(0) % blocks * RAYS + tl.arange(0, RAYS)
    row = group * R + tl.minimum(ray, R - 1)  # lanes beyond the last ray repeat it
    dx, dy, dz = three_at(directions + 3 * row, True)
    x, y, z = three_at(origins + 3 * (row if PER_RAY else group), True)
    limit = tl.load(far + group)
    t = tl.full((RAYS,), float("inf"), tl.float32)
    which = tl.full((RAYS,), -1, tl.int64)
    n, end, reach = tl.load(starts + group), tl.load(starts + group + 1), limit
    while (n < end) & (tl.load(depths + n, mask=n < end, other=0.0) <= reach):
        solid = tl.load(solids + n)
        here = _first_meeting(tl.load(shapes + solid), T_unit_world + 12 * solid, x, y, z, dx, dy, dz)
        which = tl.where(here < t, solid, which)
        t = tl.minimum(t, here)
        reach = tl.minimum(tl.max(t, 0), limit)
        n += 1
    hit = (which >= 0) & (t <= limit)
    angle = _cosine(shapes, T_unit_world, tl.where(hit, which, 0), hit, t, x, y, z, dx, dy, dz)
    out = group * R + ray
    tl.store(distance + out, tl.where(hit, t, float("inf")), mask=ray < R)
    tl.store(cosine + out, tl.where(hit, angle, 0.0), mask=ray < R)
    tl.store(met + out, tl.where(hit, which, -1), mask=ray < R)


@triton.jit
def _axes(T, present):
    """T (3, 4) by columns; zeros if it is not present."""
    xx, xy, xz, xt = row_of(T, present)
    yx, yy, yz, yt = row_of(T + 4, present)
    zx, zy, zz, zt = row_of(T + 8, present)
    return xx, yx, zx, xy, yy, zy, xz, yz, zz, xt, yt, zt


@triton.jit
def _first_meeting(shape, T, x, y, z, dx, dy, dz):
    """Distance (RAYS,) along each ray to a solid, infinite for a miss."""
    xx, yx, zx, xy, yy, zy, xz, yz, zz, xt, yt, zt = _axes(T, True)
    ux, uy, uz = xx * dx + xy * dy + xz * dz, yx * dx + yy * dy + yz * dz, zx * dx + zy * dy + zz * dz
    px, py = xx * x + xy * y + xz * z + xt, yx * x + yy * y + yz * z + yt
    pz = zx * x + zy * y + zz * z + zt
    if shape == BOX:
        enter, leave = _box(px, py, pz, ux, uy, uz)
    elif shape == BALL:
        a, half_b = ux * ux + uy * uy + uz * uz, px * ux + py * uy + pz * uz
        enter, leave = _roots(a, half_b, px * px + py * py + pz * pz - 1)
    elif shape == ROD:
        enter, leave = _rod(px, py, pz, ux, uy, uz)
    else:
        enter, leave = _cone(px, py, pz, ux, uy, uz)
    t = tl.where(enter > NEAREST, enter, leave)
    return tl.where((enter <= leave) & (t > NEAREST), t, float("inf"))


# Crossings of a line with unit shapes, by the operations of pcreg.kernels.raycast in their order.


@triton.jit
def _box(x, y, z, dx, dy, dz):
    x_low, x_high = _slab(x, dx)
    y_low, y_high = _slab(y, dy)
    z_low, z_high = _slab(z, dz)
    return tl.maximum(tl.maximum(x_low, y_low), z_low), tl.minimum(tl.minimum(x_high, y_high), z_high)


@triton.jit
def _rod(x, y, z, dx, dy, dz):
    enter, leave = _roots(dx * dx + dy * dy, x * dx + y * dy, x * x + y * y - 1)
    low, high = _slab(z, dz)
    return tl.maximum(enter, low, propagate_nan=NAN), tl.minimum(leave, high, propagate_nan=NAN)


@triton.jit
def _slab(x, dx):
    inverse = tl.div_rn(1.0, tl.where(tl.abs(dx) < 1e-9, 1e-9, dx))
    one, two = (-1 - x) * inverse, (1 - x) * inverse
    return tl.minimum(one, two), tl.maximum(one, two)


@triton.jit
def _roots(a, half_b, c):
    a = tl.maximum(a, 1e-12)
    root = tl.sqrt_rn(half_b * half_b - a * c)
    return tl.div_rn(-half_b - root, a), tl.div_rn(-half_b + root, a)


@triton.jit
def _cone(x, y, z, dx, dy, dz):
    s, ds = (1 - z) / 2, -dz / 2
    a = dx * dx + dy * dy - ds * ds
    half_b = x * dx + y * dy - s * ds
    discriminant = half_b * half_b - a * (x * x + y * y - s * s)
    root = tl.sqrt_rn(tl.maximum(discriminant, 0.0))
    a = tl.where(tl.abs(a) < 1e-12, 1e-12, a)
    one, two = tl.div_rn(-half_b - root, a), tl.div_rn(-half_b + root, a)
    base = tl.div_rn(-1 - z, tl.where(tl.abs(dz) < 1e-9, 1e-9, dz))
    across, along = x + base * dx, y + base * dy
    at_one = (discriminant >= 0) & (tl.abs(z + one * dz) <= 1)
    at_two = (discriminant >= 0) & (tl.abs(z + two * dz) <= 1)
    at_base = across * across + along * along <= 1
    low = tl.minimum(tl.where(at_one, one, float("inf")), tl.where(at_two, two, float("inf")))
    high = tl.maximum(tl.where(at_one, one, float("-inf")), tl.where(at_two, two, float("-inf")))
    low = tl.minimum(low, tl.where(at_base, base, float("inf")))
    return low, tl.maximum(high, tl.where(at_base, base, float("-inf")))


@triton.jit
def _cosine(shapes, T_unit_world, solid, hit, t, x, y, z, dx, dy, dz):
    """|cos| of the angle (RAYS,) between each ray that hit and the normal of its solid."""
    shape = tl.load(shapes + solid, mask=hit, other=0)
    xx, yx, zx, xy, yy, zy, xz, yz, zz, xt, yt, zt = _axes(T_unit_world + 12 * solid, hit)
    t = tl.where(hit, t, 0.0)
    x, y, z = x + t * dx, y + t * dy, z + t * dz
    px, py = xx * x + xy * y + xz * z + xt, yx * x + yy * y + yz * z + yt
    pz = zx * x + zy * y + zz * z + zt
    size_x, size_y, size_z = tl.abs(px), tl.abs(py), tl.abs(pz)
    is_x = (size_x >= size_y) & (size_x >= size_z)
    is_y = (size_y >= size_z) & ~is_x
    is_flat = tl.where(shape == ROD, px * px + py * py <= pz * pz, pz < -0.999)
    round_z = tl.where(shape == ROD, 0.0, (1 - pz) / 4)
    sign = tl.where(pz > 0, 1.0, tl.where(pz < 0, -1.0, 0.0))
    lx, ly, lz = tl.where(is_flat, 0.0, px), tl.where(is_flat, 0.0, py), tl.where(is_flat, sign, round_z)
    lx = tl.where(shape == BOX, tl.where(is_x, px, 0.0), tl.where(shape == BALL, px, lx))
    ly = tl.where(shape == BOX, tl.where(is_y, py, 0.0), tl.where(shape == BALL, py, ly))
    lz = tl.where(shape == BOX, tl.where(is_x | is_y, 0.0, pz), tl.where(shape == BALL, pz, lz))
    nx, ny, nz = xx * lx + yx * ly + zx * lz, xy * lx + yy * ly + zy * lz, xz * lx + yz * ly + zz * lz
    length = tl.maximum(tl.sqrt_rn(nx * nx + ny * ny + nz * nz), 1e-12)
    nx, ny, nz = tl.div_rn(nx, length), tl.div_rn(ny, length), tl.div_rn(nz, length)
    return tl.abs(nx * dx + ny * dy + nz * dz)
