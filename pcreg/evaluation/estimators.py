"""Estimators of a motion from matched points, behind one interface.

They run in worker processes that are pinned to one core (on Linux): the threads of Open3D's RANSAC share one
stream of random numbers, so its results repeat with one thread only.
"""

from dataclasses import dataclass
from typing import Protocol as Interface

import numpy as np

from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.geometry.se3 import residuals, se3
from pcreg.registration.estimation.agreement import DescriptorAgreement
from pcreg.registration.estimation.ransac import ransac
from pcreg.registration.judge.free_space import FreeSpace
from pcreg.registration.matching.nearest import Matches
from pcreg.runtime.extras import load_open3d, require

FREE_SPACE_MARGIN_DISTANCES = 2.0  # points farther than that in front of a surface are in free space


@dataclass(frozen=True)
class Matched:
    """Input of an estimator, and matches for inlier ratios."""

    source: Description
    target: Description
    matches: Matches  # for the estimator; `one_way` matches each source point to its nearest descriptor
    mutual: np.ndarray  # (Q, 2) rows of source and target, for the inlier ratio
    seconds: float  # of CPU time, for matching

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """The points (P, 3) of source and target that the matches join."""
        source, target = self.matches.rows.T
        return self.source.points[source], self.target.points[target]


class Estimator(Interface):
    """Interface of an estimator."""

    name: str
    packages: tuple[str, ...]  # whose versions the estimates depend on

    def estimate(self, given: Matched, protocol: Protocol, seed: int) -> np.ndarray | None:
        """Estimate a motion; results repeat on one core of the same machine.

        Args:
            given: Two clouds and `protocol.n` matches or more.
            protocol: The settings of RANSAC.
            seed: A number of 31 bits.

        Returns:
            T_target_source (4, 4) float64, or None if none is found.
        """
        ...


class Open3DRansac:
    """Open3D's RANSAC on matches, with its checkers; a hypothesis is scored on all source points given."""

    name = "open3d"
    packages = ("open3d",)

    def __init__(self) -> None:
        require("fpfh", "estimator=open3d")

    def estimate(self, given: Matched, protocol: Protocol, seed: int) -> np.ndarray | None:
        open3d = load_open3d()
        registration = open3d.pipelines.registration
        checkers = [registration.CorrespondenceCheckerBasedOnDistance(protocol.distance)]
        if protocol.edge_length is not None:
            checkers.insert(0, registration.CorrespondenceCheckerBasedOnEdgeLength(protocol.edge_length))
        open3d.utility.random.seed(seed)
        points = (open3d.utility.Vector3dVector(cloud.points) for cloud in (given.source, given.target))
        found = registration.registration_ransac_based_on_correspondence(
            *map(open3d.geometry.PointCloud, points),
            open3d.utility.Vector2iVector(given.matches.rows),
            protocol.distance,
            registration.TransformationEstimationPointToPoint(False),
            protocol.n,
            checkers,
            registration.RANSACConvergenceCriteria(protocol.iterations, protocol.confidence),
        )
        return found.transformation if found.fitness > 0 else None


class NativeRansac:
    """The RANSAC of `pcreg register`, with the sensors at the origins of the clouds, as for descriptors."""

    name = "ransac"
    packages = ("pcreg",)

    def estimate(self, given: Matched, protocol: Protocol, seed: int) -> np.ndarray | None:
        source, target, matches = given.source, given.target, given.matches
        agreement = DescriptorAgreement(source, target, protocol.distance)
        T, *_ = ransac(
            *given.sides,
            distance=protocol.distance,
            iterations=protocol.iterations,
            confidence=protocol.confidence,
            seed=seed,
            n=protocol.n,
            edge_length=protocol.edge_length or 0.0,
            one_way=matches.further_points(source.points, target.points),
            agreement=agreement,
            free_space=FreeSpace(
                source.points, target.points, FREE_SPACE_MARGIN_DISTANCES * protocol.distance
            ),
        )
        found = (residuals(T, *given.sides) < protocol.distance).any()
        return agreement.refine(T[None])[0] if found else None


class KissMatcher:
    """KISS-Matcher (Lim et al., ICRA 2025): graph-theoretic pruning and a robust solver, on our matches.

    The result is deterministic; the resolution is the distance of the protocol. Raises InputError if the
    package is missing.
    """

    name = "kiss"
    packages = ("kiss-matcher",)

    def __init__(self) -> None:
        require("kiss", "estimator=kiss")

    def estimate(self, given: Matched, protocol: Protocol, seed: int) -> np.ndarray | None:
        import kiss_matcher

        matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(protocol.distance))
        solution = matcher.prune_and_solve(*(list(side.astype(np.float32)) for side in given.sides))
        if not solution.valid:
            return None
        return se3(solution.rotation, np.ravel(solution.translation))
