"""The rigid motion that fits matched points best, from their sums, within a kernel and without a library.

The rotation as a unit quaternion is the eigenvector of the largest eigenvalue of a symmetric matrix (Horn,
JOSA A 1987). Newton's steps find the eigenvalue from above, as it is the largest root of a quartic (Theobald,
Acta Crystallographica A 2005); any column of the adjugate of what is left then is the eigenvector.
"""

import triton
import triton.language as tl

STEPS = tl.constexpr(40)  # to the root; a double one is approached by half the distance each time
MIN_SLOPE = tl.constexpr(1e-12)
MIN_CLEAR = tl.constexpr(1e-12)  # length of the eigenvector before it is scaled: less is rounding


@triton.jit
def rigid_fit(w, px, py, pz, qx, qy, qz, xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """R by rows and t, float64, that take points p to points q with least squared error, and whether they do.

    Of the sums of weights w, of w p, of w q, and of w p q^T by rows. Points that coincide, or none, have no
    R, points on a line one of many.
    """
    some = w > 0
    w = tl.where(some, w, 1.0)
    px, py, pz = px / w, py / w, pz / w
    xx, xy, xz = xx - px * qx, xy - px * qy, xz - px * qz
    yx, yy, yz = yx - py * qx, yy - py * qy, yz - py * qz
    zx, zy, zz = zx - pz * qx, zy - pz * qy, zz - pz * qz
    qx, qy, qz = qx / w, qy / w, qz / w
    norm = tl.sqrt(
        (xx * xx + xy * xy + xz * xz + yx * yx + yy * yy + yz * yz) + (zx * zx + zy * zy + zz * zz)
    )
    some = some & (norm > 0)
    norm = tl.where(some, norm, 1.0)
    xx, xy, xz = xx / norm, xy / norm, xz / norm
    yx, yy, yz = yx / norm, yy / norm, yz / norm
    zx, zy, zz = zx / norm, zy / norm, zz / norm
    # Horn's matrix
    a, b, c, d = xx + yy + zz, xx - yy - zz, -xx + yy - zz, -xx - yy + zz
    ab, ac, ad = yz - zy, zx - xz, xy - yx
    bc, bd, cd = xy + yx, zx + xz, yz + zy
    # Of its quartic r^4 - 2 r^2 + linear r + constant the largest root
    linear = -8 * (xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx))
    w0, x0, y0, z0, constant = _adjugate(a, b, c, d, ab, ac, ad, bc, bd, cd)
    root = tl.zeros_like(norm) + 1.7320508075688774
    for _ in range(STEPS):
        value = ((root * root - 2) * root + linear) * root + constant
        slope = (4 * root * root - 4) * root + linear
        root = root - tl.maximum(value, 0.0) / tl.maximum(slope, MIN_SLOPE)
    w0, x0, y0, z0, _ = _adjugate(a - root, b - root, c - root, d - root, ab, ac, ad, bc, bd, cd)
    length = tl.sqrt((w0 * w0 + x0 * x0) + (y0 * y0 + z0 * z0))
    some = some & (length > MIN_CLEAR)
    length = tl.where(some, length, 1.0)
    w0, x0, y0, z0 = w0 / length, x0 / length, y0 / length, z0 / length
    r00, r01, r02 = 1 - 2 * (y0 * y0 + z0 * z0), 2 * (x0 * y0 - w0 * z0), 2 * (x0 * z0 + w0 * y0)
    r10, r11, r12 = 2 * (x0 * y0 + w0 * z0), 1 - 2 * (x0 * x0 + z0 * z0), 2 * (y0 * z0 - w0 * x0)
    r20, r21, r22 = 2 * (x0 * z0 - w0 * y0), 2 * (y0 * z0 + w0 * x0), 1 - 2 * (x0 * x0 + y0 * y0)
    tx = qx - (r00 * px + r01 * py + r02 * pz)
    ty = qy - (r10 * px + r11 * py + r12 * pz)
    tz = qz - (r20 * px + r21 * py + r22 * pz)
    return r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, some


@triton.jit
def store_motion(T, r00, r01, r02, tx, r10, r11, r12, ty, r20, r21, r22, tz, mask):
    """T (4, 4), of which the last row is there already."""
    tl.store(T, r00, mask=mask)
    tl.store(T + 1, r01, mask=mask)
    tl.store(T + 2, r02, mask=mask)
    tl.store(T + 3, tx, mask=mask)
    tl.store(T + 4, r10, mask=mask)
    tl.store(T + 5, r11, mask=mask)
    tl.store(T + 6, r12, mask=mask)
    tl.store(T + 7, ty, mask=mask)
    tl.store(T + 8, r20, mask=mask)
    tl.store(T + 9, r21, mask=mask)
    tl.store(T + 10, r22, mask=mask)
    tl.store(T + 11, tz, mask=mask)


@triton.jit
def _adjugate(a, b, c, d, ab, ac, ad, bc, bd, cd):
    """The column of the adjugate with the largest entry on the diagonal, and the determinant.

    Of a symmetric matrix (4, 4) with a, b, c, d on its diagonal.
    """
    s0, s1, s2 = a * b - ab * ab, a * bc - ab * ac, a * bd - ab * ad
    s3, s4, s5 = ab * bc - b * ac, ab * bd - b * ad, ac * bd - bc * ad
    c5, c4, c3 = c * d - cd * cd, bc * d - bd * cd, bc * cd - bd * c
    c2, c1, c0 = ac * d - ad * cd, ac * cd - ad * c, ac * bd - ad * bc
    determinant = s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0
    aa, bb = b * c5 - bc * c4 + bd * c3, a * c5 - ac * c2 + ad * c1
    cc, dd = ad * s4 - bd * s2 + d * s0, ac * s3 - bc * s1 + c * s0
    a_b, a_c = -ab * c5 + ac * c4 - ad * c3, bd * s5 - cd * s4 + d * s3
    a_d, b_c = -bc * s5 + c * s4 - cd * s3, -ad * s5 + cd * s2 - d * s1
    b_d, c_d = ac * s5 - c * s2 + cd * s1, -ac * s4 + bc * s2 - cd * s0
    w, x, y, z, most = aa, a_b, a_c, a_d, tl.abs(aa)
    more = tl.abs(bb) > most
    w, x, y, z = tl.where(more, a_b, w), tl.where(more, bb, x), tl.where(more, b_c, y), tl.where(more, b_d, z)
    most = tl.maximum(most, tl.abs(bb))
    more = tl.abs(cc) > most
    w, x, y, z = tl.where(more, a_c, w), tl.where(more, b_c, x), tl.where(more, cc, y), tl.where(more, c_d, z)
    most = tl.maximum(most, tl.abs(cc))
    more = tl.abs(dd) > most
    w, x, y, z = tl.where(more, a_d, w), tl.where(more, b_d, x), tl.where(more, c_d, y), tl.where(more, dd, z)
    return w, x, y, z, determinant
