"""The pose graph: which of the registered pairs agree with one another, and the poses they give.

An edge that is wrong agrees with no cycle. Edges are ranked by the triangles that they close, poses start
from the best spanning tree, Open3D optimises all of them robustly (line processes; Choi, Zhou and Koltun,
CVPR 2015), and edges from which the poses then differ are dropped, the weakest first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from pcreg.geometry.se3 import inverse, rotation_error, translation_error
from pcreg.mapping.scan import displacement
from pcreg.runtime.device import load_open3d

MAX_CLOSURE_VOXELS = 6.0  # between a pair and the way round over other scans, of the same points
MIN_LONE_CONFIDENCE = 0.97  # of an edge that no pair of other scans confirms
UNCONFIRMED = "no pair of other scans confirms it, and its confidence is too low for that"
MIN_LINE_WEIGHT = 0.25  # of Open3D: an edge with less does not count
PREFERENCE = 1.0  # of Open3D, for edges over agreement


@dataclass(frozen=True)
class Edge:
    """A registered pair."""

    source: int  # rows of the scans
    target: int
    T_target_source: np.ndarray  # (4, 4), between the local frames
    confidence: float
    # (6, 6), as by pcreg.registration.judge.covariance: in the frame of the source, rotation first
    covariance: np.ndarray = field(repr=False)
    verified: bool = False  # with the scans around both, so that it needs no other to confirm it


@dataclass(frozen=True)
class PoseGraph:
    poses: np.ndarray  # (n, 4, 4), each in the local frame of the first scan of its component
    component: np.ndarray  # (n,) int64, ascending by the first scan
    rejections: tuple[str, ...]  # of each edge why it is not used; empty: it is


def solve(edges: Sequence[Edge], probes: Sequence[np.ndarray], voxel: float) -> PoseGraph:
    """Poses of scans, and which of the edges they rest on.

    `probes` (n of (P, 3)) are points of each scan, by which motions are compared.
    """
    tolerance = MAX_CLOSURE_VOXELS * voxel
    rejections = [""] * len(edges)
    triangles = closed_triangles(edges, probes, tolerance)
    while True:
        used = [number for number, reason in enumerate(rejections) if not reason]
        poses, component = _optimised([edges[number] for number in used], triangles[used], probes, tolerance)
        residual = {number: _residual(edges[number], poses, probes) for number in used}
        worst = max(used, key=lambda number: residual[number], default=None)
        if worst is not None and residual[worst] > tolerance:
            far = [number for number in used if residual[number] > max(tolerance, residual[worst] / 2)]
            far.sort(key=lambda number: triangles[number] + edges[number].confidence)
            for number in far[: max(len(far) // 2, 1)]:  # in a cycle that does not close, the weakest
                rejections[number] = _contradiction(edges[number], poses)
            continue
        if lone := _unconfirmed(len(probes), edges, used):
            for number in lone:
                rejections[number] = UNCONFIRMED
            continue
        return PoseGraph(poses, component, tuple(rejections))


def closed_triangles(edges: Sequence[Edge], probes: Sequence[np.ndarray], tolerance: float) -> np.ndarray:
    """How many triangles of edges each edge closes within the tolerance, in metres: (E,)."""
    between = {}
    around: dict[int, set[int]] = {}
    for number, edge in enumerate(edges):
        between[edge.source, edge.target] = number, edge.T_target_source
        between[edge.target, edge.source] = number, inverse(edge.T_target_source)
        around.setdefault(edge.source, set()).add(edge.target)
        around.setdefault(edge.target, set()).add(edge.source)
    closed = np.zeros(len(edges), dtype=np.int64)
    for a, others in around.items():
        for b, c in combinations(sorted(others), 2):
            if a < b and c in around[b]:
                (ab, T_b_a), (bc, T_c_b), (ac, T_c_a) = between[a, b], between[b, c], between[a, c]
                if displacement(T_c_b @ T_b_a, T_c_a, probes[a]) <= tolerance:
                    closed[[ab, bc, ac]] += 1
    return closed


def components(n: int, edges: Sequence[Edge]) -> np.ndarray:
    """The component (n,) of each scan, numbered by the first scan of each."""
    ends = np.array([(edge.source, edge.target) for edge in edges], dtype=np.int64).reshape(-1, 2)
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(joined, directed=False)[1].astype(np.int64)


def _optimised(
    edges: Sequence[Edge], triangles: np.ndarray, probes: Sequence[np.ndarray], tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Poses and components; within each the first scan stays where it is."""
    component = components(len(probes), edges)
    poses = _spanning_poses(len(probes), edges, triangles)
    for number in range(component.max(initial=-1) + 1):
        (rows,) = np.nonzero(component == number)
        own = [edge for edge in edges if component[edge.source] == number]
        if len(own) >= len(rows):  # else a tree, which is exact
            poses[rows] = _globally_optimised(rows, own, poses[rows], tolerance)
    return poses, component


def _spanning_poses(n: int, edges: Sequence[Edge], triangles: np.ndarray) -> np.ndarray:
    """Poses (n, 4, 4) along the tree of the edges that close most triangles, by confidence among equals."""
    poses = np.tile(np.eye(4), (n, 1, 1))
    between = {}
    cost = np.zeros((n, n))
    for edge, closed in zip(edges, triangles, strict=True):
        between[edge.source, edge.target] = inverse(edge.T_target_source)  # T_source_target
        between[edge.target, edge.source] = edge.T_target_source
        cost[edge.source, edge.target] = cost[edge.target, edge.source] = 1 / (closed + edge.confidence)
    tree = minimum_spanning_tree(cost)
    seen = np.zeros(n, dtype=bool)
    for first in range(n):
        if not seen[first]:
            order, before = breadth_first_order(tree, first, directed=False)
            seen[order] = True
            for scan in order[1:]:
                poses[scan] = poses[before[scan]] @ between[before[scan], scan]
    return poses


def _globally_optimised(
    rows: np.ndarray, edges: Sequence[Edge], poses: np.ndarray, tolerance: float
) -> np.ndarray:
    """Poses (m, 4, 4) of the scans `rows` (m,), optimised by Open3D from `poses`; the first stays."""
    open3d = load_open3d()
    registration, utility = open3d.pipelines.registration, open3d.utility
    place = {int(row): number for number, row in enumerate(rows)}
    graph = registration.PoseGraph()
    graph.nodes.extend(registration.PoseGraphNode(pose) for pose in poses)
    graph.edges.extend(
        registration.PoseGraphEdge(
            place[edge.source],
            place[edge.target],
            edge.T_target_source,
            np.linalg.inv(edge.covariance),  # Open3D perturbs on the right, in the frame of the source, too
            uncertain=True,
        )
        for edge in edges
    )
    with utility.VerbosityContextManager(utility.VerbosityLevel.Error):
        registration.global_optimization(
            graph,
            registration.GlobalOptimizationLevenbergMarquardt(),
            registration.GlobalOptimizationConvergenceCriteria(),
            registration.GlobalOptimizationOption(
                max_correspondence_distance=tolerance,
                edge_prune_threshold=MIN_LINE_WEIGHT,
                preference_loop_closure=PREFERENCE,
                reference_node=0,
            ),
        )
    found = np.array([node.pose for node in graph.nodes])
    found = poses[0] @ inverse(found[0]) @ found
    found[0] = poses[0]
    return found


def _residual(edge: Edge, poses: np.ndarray, probes: Sequence[np.ndarray]) -> float:
    """Metres, root mean square, between where the edge and the poses put the source."""
    return displacement(_relative(edge, poses), edge.T_target_source, probes[edge.source])


def _relative(edge: Edge, poses: np.ndarray) -> np.ndarray:
    return inverse(poses[edge.target]) @ poses[edge.source]


def _contradiction(edge: Edge, poses: np.ndarray) -> str:
    relative = _relative(edge, poses)
    metres = translation_error(relative, edge.T_target_source)
    degrees = rotation_error(relative, edge.T_target_source)
    return f"contradicts the other pairs by {metres:.2f} m and {degrees:.1f} degrees"


def _unconfirmed(n: int, edges: Sequence[Edge], used: Sequence[int]) -> list[int]:
    """The edges by number, of those in use, by which one scan joins two parts of a map without certainty.

    All of them rest on that scan: if it looks the same from two sides they are wrong together, and agree. So
    the most certain of them has to be as certain as an edge alone. Two that place a scan at the end of a map
    confirm each other. Of such groups that with the fewest edges is returned, which another may confirm then.
    """
    found: list[list[int]] = []
    for scan in range(n):
        own = [number for number in used if scan in (edges[number].source, edges[number].target)]
        part = components(n, [edges[number] for number in set(used).difference(own)])
        ends = [part[edges[number].source + edges[number].target - scan] for number in own]
        for joined in set(ends):
            group = [number for number, end in zip(own, ends, strict=True) if end == joined]
            is_certain = any(
                edges[number].verified or edges[number].confidence >= MIN_LONE_CONFIDENCE for number in group
            )
            is_confirmed = len(set(ends)) == 1 and len(group) > 1
            if not is_certain and not is_confirmed:
                found.append(group)
    return min(found, key=len, default=[])
