"""Joint refinement of all scans of a map, point to plane.

Gauss-Newton over all poses, with a row for each point of a scan and its nearest point in each scan that
overlaps with it (Neugebauer, 1997; multi-view ICP). Partners are searched anew in each of a few steps, with
Tukey's weights.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import splu
from scipy.spatial.transform import Rotation

from pcreg.arrays import Index, every_nth
from pcreg.geometry.se3 import adjoint, inverse, se3, transform
from pcreg.mapping.submap import Scan
from pcreg.registration.estimation.icp import plane_rows
from pcreg.runtime import parallel

MAX_POINTS = 2_000  # of a scan that search for partners in another
PARTNER_VOXELS = (2.0, 1.0, 1.0, 1.0)  # the distance to partners, by step
MIN_OVERLAP = 0.1  # of the smaller of two scans that are refined with each other
MAX_PARTNERS = 10  # scans with which one is refined, those that overlap most
CELL_VOXELS = 4.0  # edge of the cells by which overlap is estimated
DAMPING = 1e-6  # of the diagonal, against directions in which a map can slide


def overlaps(scans: Sequence[Scan], poses: np.ndarray, component: np.ndarray, voxel: float) -> csr_array:
    """Estimated overlap of each two scans of one component, as a fraction of the smaller: (n, n)."""
    edge, cells = CELL_VOXELS * voxel, []
    for scan, pose, own in zip(scans, poses, component, strict=True):
        cell = np.unique(np.floor(transform(pose, scan.surface) / edge).astype(np.int64), axis=0)
        cells.append(np.insert(cell, 0, own, axis=1))
    owner = np.repeat(np.arange(len(scans)), [len(cell) for cell in cells])
    _, column = np.unique(np.concatenate(cells), axis=0, return_inverse=True)
    seen = coo_array((np.ones(len(owner)), (owner, column.ravel()))).tocsr()
    shared = (seen @ seen.T).tocoo()
    sizes, (rows, columns) = shared.diagonal(), shared.coords
    other = rows != columns
    share = shared.data / np.minimum(sizes[rows], sizes[columns])
    found = csr_array((share[other], (rows[other], columns[other])), shape=shared.shape)
    found.sort_indices()
    return found


def most_overlapping(shared: csr_array, scan: int, count: int, least: float) -> list[int]:
    """Up to `count` scans that overlap most with one, by `least` or more."""
    own = slice(shared.indptr[scan], shared.indptr[scan + 1])
    values, others = shared.data[own], shared.indices[own]
    best = np.argsort(-values, kind="stable")[:count]
    return others[best[values[best] >= least]].tolist()


def refine_jointly(
    scans: Sequence[Scan], poses: np.ndarray, component: np.ndarray, voxel: float
) -> np.ndarray:
    """The poses (n, 4, 4), refined; the first scan of each component stays where it is."""
    pairs = partners(overlaps(scans, poses, component, voxel))
    trees = [Index(scan.surface) for scan in scans]
    is_free = np.ones(len(scans), dtype=bool)
    is_free[np.unique(component, return_index=True)[1]] = False
    poses = poses.copy()
    for voxels in PARTNER_VOXELS if pairs else ():
        parts = parallel.each(
            lambda pair, distance=voxels * voxel: _normal_equations(scans, trees, poses, pair, distance),
            pairs,
        )
        _step(is_free, pairs, parts, poses)
    return poses


def partners(shared: csr_array) -> list[tuple[int, int]]:
    """The pairs of scans that are refined with each other, of the overlaps (n, n)."""
    chosen = set()
    for scan in range(shared.shape[0]):
        for other in most_overlapping(shared, scan, MAX_PARTNERS, MIN_OVERLAP):
            chosen.add((max(scan, other), min(scan, other)))
    return sorted(chosen)


def _normal_equations(
    scans: Sequence[Scan],
    trees: Sequence[Index],
    poses: np.ndarray,
    pair: tuple[int, int],
    distance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """J^T J (6, 6) and J^T r (6,) of a twist of the source in the map's frame; the target has -J."""
    source, target = pair
    T = inverse(poses[target]) @ poses[source]
    points = transform(T, every_nth(scans[source].surface, MAX_POINTS))
    found, partner = trees[target].query(points, max_distance=distance)
    near = np.isfinite(found)
    points, normals = points[near], scans[target].normals[partner[near]]
    offset = ((trees[target].points[partner[near]] - points) * normals).sum(1)  # (K,), metres
    rows = plane_rows(points, normals)  # (K, 6), d offset / d twist, rotation first
    weights = np.maximum(1 - (offset / distance) ** 2, 0) ** 2  # Tukey's
    weighted = rows * weights[:, None]
    to_target = adjoint(inverse(poses[target]))
    return to_target.T @ (weighted.T @ rows) @ to_target, to_target.T @ (weighted.T @ offset)


def _step(
    is_free: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    poses: np.ndarray,
) -> None:
    """One step of Gauss-Newton for the scans that are free (n,), in place."""
    source, target = np.array(pairs).T
    squares, right = (np.array(part) for part in zip(*parts, strict=True))
    gradient = np.zeros((len(poses), 6))
    np.add.at(gradient, source, right)
    np.subtract.at(gradient, target, right)
    rows, columns = (
        np.concatenate(ends) for ends in ((source, target) * 2, (source, target, target, source))
    )
    blocks = np.concatenate([squares, squares, -squares, -squares])
    kept, place = is_free[rows] & is_free[columns], 6 * (np.cumsum(is_free) - 1)
    row = place[rows[kept], None, None] + np.arange(6)[:, None]
    column = place[columns[kept], None, None] + np.arange(6)
    ends = tuple(np.broadcast_to(each, blocks[kept].shape).ravel() for each in (row, column))
    matrix = coo_array((blocks[kept].ravel(), ends), shape=(6 * is_free.sum(),) * 2).tocsc()
    damped = (matrix + diags_array(DAMPING * matrix.diagonal() + 1e-9)).tocsc()
    solver = splu(damped, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0, options={"SymmetricMode": True})
    twists = solver.solve(gradient[is_free].ravel()).reshape(-1, 6)
    for scan, twist in zip(np.flatnonzero(is_free), twists, strict=True):
        poses[scan] = se3(Rotation.from_rotvec(twist[:3]).as_matrix(), twist[3:]) @ poses[scan]
