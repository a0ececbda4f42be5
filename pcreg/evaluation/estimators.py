"""Estimators: from matched points to a motion, behind one interface, so that a benchmark can exchange them.

They run in the worker processes of a benchmark, each of which is pinned to one core (on Linux): Open3D's
RANSAC shares one stream of random numbers among its threads, and repeats only where it has a single one.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Protocol as Interface

import numpy as np

from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.geometry.se3 import se3
from pcreg.registration.estimation.agreement import DescriptorAgreement
from pcreg.registration.estimation.ransac import ransac
from pcreg.registration.judge.free_space import FreeSpace
from pcreg.registration.matching.nearest import Matches
from pcreg.runtime.device import load_open3d
from pcreg.runtime.errors import InputError

FREE_SPACE_MARGIN_DISTANCES = 2.0  # points further in front of a surface are not part of it


class Estimator(Interface):
    """What a benchmark needs of an estimator."""

    name: str
    packages: tuple[str, ...]  # whose versions the estimates depend on

    def estimate(
        self, source: Description, target: Description, matches: Matches, protocol: Protocol, seed: int
    ) -> np.ndarray | None:
        """T_target_source (4, 4) float64 from described clouds and their matches; None: not found.

        Same input and seed, same machine, one core: same output.
        """
        ...

    def label(self, protocol: Protocol) -> str:
        """How it estimates under this protocol, for a caption."""
        ...


class Open3DRansac:
    """Open3D's RANSAC on matches, with its checkers; a hypothesis is scored on all source points given."""

    name = "open3d"
    packages = ("open3d",)

    def estimate(
        self, source: Description, target: Description, matches: Matches, protocol: Protocol, seed: int
    ) -> np.ndarray | None:
        open3d = load_open3d()

        if len(matches.rows) < protocol.n:
            return None
        registration = open3d.pipelines.registration
        checkers = [registration.CorrespondenceCheckerBasedOnDistance(protocol.distance)]
        if protocol.edge_length is not None:
            checkers.insert(0, registration.CorrespondenceCheckerBasedOnEdgeLength(protocol.edge_length))
        open3d.utility.random.seed(seed)
        found = registration.registration_ransac_based_on_correspondence(
            *(
                open3d.geometry.PointCloud(open3d.utility.Vector3dVector(cloud.points))
                for cloud in (source, target)
            ),
            open3d.utility.Vector2iVector(matches.rows),
            protocol.distance,
            registration.TransformationEstimationPointToPoint(False),
            protocol.n,
            checkers,
            registration.RANSACConvergenceCriteria(protocol.iterations, protocol.confidence),
        )
        return found.transformation if found.fitness > 0 else None

    def label(self, protocol: Protocol) -> str:
        return f"RANSAC of Open3D: {_ransac_words(protocol)}"


class NativeRansac:
    """The RANSAC of `pcreg register`; it takes the clouds' origins for their sensors, as descriptors do."""

    name = "ransac"
    packages = ("pcreg",)

    def estimate(
        self, source: Description, target: Description, matches: Matches, protocol: Protocol, seed: int
    ) -> np.ndarray | None:
        if len(matches.rows) < protocol.n:
            return None
        agreement = DescriptorAgreement(source, target, protocol.distance)
        found = ransac(
            source.points[matches.rows[:, 0]],
            target.points[matches.rows[:, 1]],
            distance=protocol.distance,
            iterations=protocol.iterations,
            confidence=protocol.confidence,
            seed=seed,
            n=protocol.n,
            edge_length=protocol.edge_length or 0.0,
            weights=matches.confidence,
            one_way=matches.further_points(source.points, target.points),
            agreement=agreement,
            free_space=FreeSpace(
                source.points, target.points, FREE_SPACE_MARGIN_DISTANCES * protocol.distance
            ),
        )
        return agreement.refine(found.T_target_source) if found.inliers else None

    def label(self, protocol: Protocol) -> str:
        return (
            f"RANSAC of this package: {_ransac_words(protocol)}, "
            "scored on the matches, the finalists on descriptors and free space, too; the best is "
            "refined on points with like descriptors"
        )


class KissMatcher:
    """KISS-Matcher (Lim et al., ICRA 2025): graph-theoretic pruning and a robust solver, on our matches.

    It draws nothing at random. Its one knob, the resolution, is the protocol's distance. Raises
    InputError if the package is missing.
    """

    name = "kiss"
    packages = ("kiss-matcher",)

    def __init__(self) -> None:
        try:
            version("kiss-matcher")
        except PackageNotFoundError as error:
            raise InputError(
                "estimator=kiss: needs the package kiss-matcher; type: pip install kiss-matcher"
            ) from error

    def estimate(
        self, source: Description, target: Description, matches: Matches, protocol: Protocol, seed: int
    ) -> np.ndarray | None:
        import kiss_matcher

        if len(matches.rows) < protocol.n:
            return None
        matcher = kiss_matcher.KISSMatcher(kiss_matcher.KISSMatcherConfig(protocol.distance))
        sides = source.points[matches.rows[:, 0]], target.points[matches.rows[:, 1]]
        solution = matcher.prune_and_solve(*(list(side.astype(np.float32)) for side in sides))
        if not solution.valid:
            return None
        return se3(solution.rotation, np.ravel(solution.translation))

    def label(self, protocol: Protocol) -> str:
        return f"KISS-Matcher at resolution {protocol.distance:g} m (pruning and robust solver, no RANSAC)"


def _ransac_words(protocol: Protocol) -> str:
    edges = "" if protocol.edge_length is None else f"edge length {protocol.edge_length:g} and "
    return (
        f"at most {protocol.iterations} samples of {protocol.n}, confidence {protocol.confidence:g}, "
        f"distance {protocol.distance:g} m, {edges}distance checked"
    )
