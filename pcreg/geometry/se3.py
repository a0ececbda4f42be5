"""Rigid motions and similarities as (4, 4) float64 matrices on the host.

They act on rows of points (N, 3) on any device; results with a row per point stay on that device.
"""

import numpy as np

from pcreg.arrays import Array, like, namespace, to_host
from pcreg.runtime.errors import InputError, refusing

# Of an entry of R R^T from the identity, and of the length of a quaternion from 1. Rotations in the published
# pair lists of 3DMatch deviate by up to 1.4e-3, those of three decimals by 2e-3.
MAX_DEVIATION = 5e-3

# SciPy's Rotation cannot replace rotation_about and random_rotation: its last digits differ, which would
# change the results of seeded searches.


def se3(R: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Motions (..., 4, 4) p -> R p + t of rotations (..., 3, 3) and translations (..., 3)."""
    T = np.zeros((*R.shape[:-2], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, t, 1
    return T


def translation(t: np.ndarray) -> np.ndarray:
    """Motion (4, 4) p -> p + t by (3,)."""
    return se3(np.eye(3), t)


def inverse(T: np.ndarray) -> np.ndarray:
    """Inverse of a rigid motion (4, 4)."""
    R_inverse = T[:3, :3].T
    return se3(R_inverse, -R_inverse @ T[:3, 3])


def adjoint(T: np.ndarray) -> np.ndarray:
    """Matrix (6, 6) of a motion T (4, 4) for which exp(Ad x) = T exp(x) T^-1, rotations first in x."""
    R, (x, y, z) = T[:3, :3], T[:3, 3]
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[R, np.zeros((3, 3))], [cross @ R, R]])


def transform(T: np.ndarray, points: Array) -> Array:
    """Points (N, 3) moved by T (4, 4)."""
    T = like(T, points)
    return points @ T[:3, :3].T + T[:3, 3]


def moved_by_each(motions: np.ndarray, points: Array) -> Array:
    """Points (N, 3), or (H, N, 3), moved by each of H motions (H, 4, 4): (H, N, 3)."""
    T = like(motions, points)
    return points @ T[:, :3, :3].swapaxes(1, 2) + T[:, None, :3, 3]


def lengths(vectors: Array) -> Array:
    """Lengths (...) of vectors (..., 3), bit-identical to NumPy's norm in half its time."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    return namespace(vectors).sqrt((x * x + y * y) + z * z)


def dot(a: Array, b: Array) -> Array:
    """Dot products (...) of vectors (..., 3), bit-identical to (a * b).sum(-1) in a third of its time."""
    products = a * b
    return (products[..., 0] + products[..., 1]) + products[..., 2]


def residuals(T: np.ndarray, source: Array, target: Array) -> Array:
    """Metres (N,) between source (N, 3), moved by T (4, 4), and target (N, 3), row by row."""
    return lengths(transform(T, source) - target)


def mean_displacement(points: Array, T: np.ndarray, other: np.ndarray) -> float:
    """Mean distance in metres between points (N, 3), N > 0, as two motions (4, 4) move them."""
    return float(residuals(T, points, transform(other, points)).mean())


def rms_displacement(points: Array, T: np.ndarray, other: np.ndarray) -> float:
    """RMS distance in metres between points (N, 3), N > 0, as two motions (4, 4) move them."""
    apart = transform(T - other, points)
    return float(np.sqrt(dot(apart, apart).mean()))


def box(points: Array) -> np.ndarray:
    """Lower and upper corner (2, 3), on the host, of points (N, 3), N > 0."""
    # Column by column: NumPy is many times slower with rows of three numbers
    xp, columns = namespace(points), [points[:, axis] for axis in range(3)]
    return to_host(xp.stack([xp.stack([end(each) for each in columns]) for end in (xp.min, xp.max)]))


def rotation_about(axis: np.ndarray, degrees: float) -> np.ndarray:
    """Right-handed rotation (3, 3) by `degrees` about `axis` (3,), of any length but zero."""
    x, y, z = np.asarray(axis, dtype=np.float64) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.radians(degrees)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def turns(points: np.ndarray) -> np.ndarray:
    """Quarter and half turns (9, 4, 4) of points (N, 3) about their principal axes through their mean."""
    middle, axes = points.mean(0), np.linalg.svd(np.cov(points.T))[0].T
    rotations = [rotation_about(axis, degrees) for axis in axes for degrees in (90, 180, 270)]
    return np.stack([se3(R, middle - R @ middle) for R in rotations])


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Draw a rotation (3, 3), uniform over all rotations: a normalised Gaussian quaternion."""
    w, x, y, z = (q := rng.standard_normal(4)) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def limited_rotation(rng: np.random.Generator, degrees: float) -> np.ndarray:
    """Draw a rotation (3, 3) by at most `degrees` about any axis; uniform over all rotations from 180 on."""
    if degrees >= 180:
        return random_rotation(rng)
    return rotation_about(rng.standard_normal(3), rng.uniform(0, degrees))


def rotation_error(T_estimate: np.ndarray, T_true: np.ndarray) -> float:
    """RRE in degrees: the angle of R_estimate^T R_true, geodesic."""
    cosine = (np.trace(T_estimate[:3, :3].T @ T_true[:3, :3]) - 1) / 2
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def translation_error(T_estimate: np.ndarray, T_true: np.ndarray) -> float:
    """RTE in metres: |t_estimate - t_true|; it depends on where the frames have their origins."""
    return float(np.linalg.norm(T_estimate[:3, 3] - T_true[:3, 3]))


def procrustes(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Least-squares motions (..., 4, 4) from source (..., N, 3) to target (..., N, 3).

    Kabsch's solution by singular values, reflections excluded. N >= 3 points not on one line. Squares are
    weighted by `weights` (..., N), at least three of them positive; by default they count alike.
    """
    if weights is None:
        source_centre, target_centre = source.mean(-2), target.mean(-2)
    else:
        share = (weights / weights.sum(-1, keepdims=True))[..., None]
        source_centre, target_centre = (source * share).sum(-2), (target * share).sum(-2)
    centred = source - source_centre[..., None, :], target - target_centre[..., None, :]
    weighted = centred[0] if weights is None else centred[0] * share
    return aligning_motion(weighted.swapaxes(-1, -2) @ centred[1], source_centre, target_centre)


def aligning_motion(
    covariance: np.ndarray, source_centre: np.ndarray, target_centre: np.ndarray
) -> np.ndarray:
    """`procrustes` by sums (..., 3, 3) of centred products, source by target, and the centres (..., 3)."""
    U, _, Vt = np.linalg.svd(covariance)
    Vt[..., 2, :] *= np.sign(np.linalg.det(U) * np.linalg.det(Vt))[..., None]
    R = Vt.swapaxes(-1, -2) @ U.swapaxes(-1, -2)
    return se3(R, target_centre - (R @ source_centre[..., None])[..., 0])


def rigid(matrix: np.ndarray) -> np.ndarray:
    """Motion (4, 4) with the upper rows of a matrix (3 or 4, 4); ValueError unless it is rigid."""
    R = matrix[:3, :3]
    if not np.isfinite(matrix).all():
        raise ValueError("not a rotation and a translation, as its numbers are not finite")
    if not np.allclose(R @ R.T, np.eye(3), atol=MAX_DEVIATION):
        stretch = np.linalg.svd(R, compute_uv=False)
        words = f"as it stretches by {stretch.min():.4g} to {stretch.max():.4g}"
        raise ValueError(f"not a rotation and a translation, {words}")
    if len(matrix) == 4 and not np.allclose(matrix[3], (0, 0, 0, 1), atol=MAX_DEVIATION):
        raise ValueError("no motion, as its last row is not 0 0 0 1 (transpose it if its last column is)")
    if np.linalg.det(R) < 0:
        raise ValueError("a mirror image, not a rotation (change the sign of an axis)")
    return se3(R, matrix[:3, 3])


def rigid_motion(matrix: object, name: str) -> np.ndarray:
    """Rigid motion (4, 4) float64 nearest to a matrix (4, 4), or to its upper rows (3, 4).

    Raises InputError, which calls the matrix `name`, unless it is `rigid`.
    """
    try:
        T = np.asarray(to_host(matrix), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: is not an array of numbers; pass a transform (4, 4)") from error
    if T.shape not in ((4, 4), (3, 4)):
        raise InputError(f"{name}: has shape {T.shape}; pass a rigid transform (4, 4)")
    remedy = "pass a rotation and a translation in metres, with four decimals or more"
    with refusing(f"{name}: is {{error}}; {remedy}", ValueError):
        T = rigid(T)
    U, _, Vt = np.linalg.svd(T[:3, :3])
    return se3(U @ Vt, T[:3, 3])


def enlargement(scale: float) -> np.ndarray:
    """Similarity (4, 4) that enlarges by `scale` about the origin."""
    return np.diag([scale, scale, scale, 1.0])


def scale_of(T: np.ndarray) -> float:
    """Scale of a similarity (4, 4), p -> s R p + t with s > 0."""
    return float(np.cbrt(np.linalg.det(T[:3, :3])))


def umeyama(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Least-squares similarity (4, 4) from source (N, 3) to target (N, 3).

    Umeyama, PAMI 1991: the rotation is that of `procrustes`, reflections excluded. N >= 3 points not on one
    line. The scale is 0 or less if the clouds have nothing in common.
    """
    R = procrustes(source, target)[:3, :3]
    centre, other = source.mean(0), target.mean(0)
    rotated = (source - centre) @ R.T
    scale = ((target - other) * rotated).sum() / (rotated**2).sum()
    return se3(scale * R, other - scale * R @ centre)
