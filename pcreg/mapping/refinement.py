"""Joint refinement: all scans of a map at once, point to plane, after the pose graph has put them in place.

Gauss-Newton over all poses, a row for each point of a scan and its nearest point in each scan that it
overlaps with (Neugebauer, 1997; multi-view ICP). Partners are searched anew in each of a few steps, and weigh
the less the further away they are.
"""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from pcreg.geometry.nearest import nearest
from pcreg.geometry.se3 import adjoint, inverse, se3, transform
from pcreg.geometry.subsample import every_nth
from pcreg.mapping.scan import Scan
from pcreg.registration.estimation.icp import plane_rows
from pcreg.runtime import parallel

MAX_POINTS = 2_000  # of a scan, that look for partners in another
PARTNER_VOXELS = (2.0, 1.0, 1.0, 1.0)  # the distance to partners, by step
MIN_OVERLAP = 0.1  # of the smaller of two scans, from which on they are partners
MAX_PARTNERS = 10  # scans with which one is refined, those that overlap most
CELL_VOXELS = 4.0  # edge of the cells by which overlap is estimated
DAMPING = 1e-6  # of the diagonal, against directions in which a map can slide


def overlaps(scans: Sequence[Scan], poses: np.ndarray, component: np.ndarray, voxel: float) -> np.ndarray:
    """Of each two scans of one component the fraction of the smaller that both see, (n, n), roughly."""
    edge, found = CELL_VOXELS * voxel, np.zeros((len(scans), len(scans)))
    cells = []
    for scan, pose in zip(scans, poses, strict=True):
        cells.append(np.unique(np.floor(transform(pose, scan.surface) / edge).astype(np.int64), axis=0))
    for number in range(component.max(initial=-1) + 1):
        (members,) = np.nonzero(component == number)
        owner = np.repeat(np.arange(len(members)), [len(cells[row]) for row in members])
        _, cell = np.unique(np.concatenate([cells[row] for row in members]), axis=0, return_inverse=True)
        seen = coo_array((np.ones(len(cell)), (owner, cell.ravel()))).tocsr()
        shared = (seen @ seen.T).toarray()
        sizes = shared.diagonal()
        found[np.ix_(members, members)] = shared / np.minimum.outer(sizes, sizes)
    np.fill_diagonal(found, 0)
    return found


def refine_jointly(
    scans: Sequence[Scan], poses: np.ndarray, component: np.ndarray, voxel: float
) -> np.ndarray:
    """The poses (n, 4, 4), refined; the first scan of each component stays where it is."""
    shared = overlaps(scans, poses, component, voxel)
    pairs = partners(shared)
    trees = [cKDTree(scan.surface) for scan in scans]
    poses = poses.copy()
    for voxels in PARTNER_VOXELS:
        parts = parallel.each(
            lambda pair, distance=voxels * voxel: _normal_equations(scans, trees, poses, pair, distance),
            pairs,
        )
        for number in range(component.max(initial=-1) + 1):
            (members,) = np.nonzero(component == number)
            _step(members, pairs, parts, poses)
    return poses


def partners(shared: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of scans that are refined with each other: of each those that overlap most."""
    chosen = set()
    for row, overlap in enumerate(shared):
        for other in np.argsort(-overlap, kind="stable")[:MAX_PARTNERS]:
            if overlap[other] >= MIN_OVERLAP:
                chosen.add((max(row, int(other)), min(row, int(other))))
    return sorted(chosen)


def _normal_equations(
    scans: Sequence[Scan],
    trees: Sequence[cKDTree],
    poses: np.ndarray,
    pair: tuple[int, int],
    distance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """J^T J (6, 6) and J^T r (6,) of a twist of the pair's source, in the frame of the map.

    A twist of the target has the same with the opposite sign.
    """
    source, target = pair
    T = inverse(poses[target]) @ poses[source]
    rows, offset = _rows(scans[source], trees[target], scans[target].normals, T, distance)
    weights = np.maximum(1 - (offset / distance) ** 2, 0) ** 2  # Tukey's
    weighted = rows * weights[:, None]
    to_target = adjoint(inverse(poses[target]))
    return to_target.T @ (weighted.T @ rows) @ to_target, to_target.T @ (weighted.T @ offset)


def _rows(
    source: Scan, tree: cKDTree, normals: np.ndarray, T_target_source: np.ndarray, distance: float
) -> tuple[np.ndarray, np.ndarray]:
    """d offset / d twist (K, 6), rotation first, and the offsets (K,), metres, of points with partners."""
    points = transform(T_target_source, every_nth(source.surface, MAX_POINTS))
    found, partner = nearest(points, tree, distance)
    near = np.isfinite(found)
    points, normal = points[near], normals[partner[near]]
    offset = ((tree.data[partner[near]] - points) * normal).sum(1)
    return plane_rows(points, normal), offset


def _step(
    members: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    poses: np.ndarray,
) -> None:
    """One step of Gauss-Newton for the scans of a component, in place."""
    place = {int(row): 6 * number for number, row in enumerate(members)}
    size = 6 * len(members)
    hessian, gradient = np.zeros((size, size)), np.zeros(size)
    for (source, target), (square, right) in zip(pairs, parts, strict=True):
        if source not in place:
            continue
        a, b = (slice(place[scan], place[scan] + 6) for scan in (source, target))
        hessian[a, a] += square
        hessian[b, b] += square
        hessian[a, b] -= square
        hessian[b, a] -= square
        gradient[a] += right
        gradient[b] -= right
    free = slice(6, size)  # the first scan stays
    if size == 6:
        return
    matrix = hessian[free, free]
    matrix = matrix + np.diag(DAMPING * matrix.diagonal() + 1e-9)
    twists = cho_solve(cho_factor(matrix), gradient[free]).reshape(-1, 6)
    for row, twist in zip(members[1:], twists, strict=True):
        poses[row] = se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:]) @ poses[row]
