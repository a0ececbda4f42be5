"""Two clouds in, one Registration out: describe, match, estimate, refine, judge."""

from dataclasses import replace

import numpy as np

from pcreg.clock import Clock
from pcreg.descriptors import Descriptor
from pcreg.errors import InputError
from pcreg.freespace import intrusion
from pcreg.geometry import inverse, transform
from pcreg.matching import mutual
from pcreg.ransac import ransac
from pcreg.refine import Refinement, refine
from pcreg.registration import Registration
from pcreg.shape import Shape, shape_of, viewpoint
from pcreg.verdict import judge

Sides = tuple[np.ndarray, np.ndarray]  # of the source and of the target


class Registrar:
    """Registers pairs of clouds with one descriptor.

    Every length is a multiple of the descriptor's voxel size. Raises InputError for a multiple or a
    number of iterations that is not positive.
    """

    def __init__(
        self,
        descriptor: Descriptor,
        *,
        match_reach: float = 1.5,  # voxels: thinning leaves true partners up to this far apart
        overlap_reach: float = 1.0,  # voxels: a surface seen twice has a partner within one cell
        free_reach: float = 4.0,  # voxels: what stands further in front of a surface is not part of it
        attempts: int = 3,  # motions tried: a refused one is set aside together with its matches
        iterations: int = 1_000_000,  # samples of RANSAC: indoors 2 % of FPFH's matches may be right
    ) -> None:
        for name, value in (
            ("voxel", descriptor.voxel),
            ("match_reach", match_reach),
            ("overlap_reach", overlap_reach),
            ("free_reach", free_reach),
            ("attempts", attempts),
            ("iterations", iterations),
        ):
            if not value > 0:
                raise InputError(f"{name} is {value}; it must be positive")
        self.descriptor = descriptor
        self.match_distance = match_reach * descriptor.voxel
        self.overlap_distance = overlap_reach * descriptor.voxel
        self.free_distance = free_reach * descriptor.voxel
        self.attempts = attempts
        self.iterations = iterations

    @property
    def name(self) -> str:
        """Of the descriptor; with `device` and `describe` all that keeping descriptions asks for."""
        return self.descriptor.name

    @property
    def device(self) -> str:
        return self.descriptor.device

    def describe(self, points: np.ndarray, name: str = "cloud") -> Shape:
        """The shape of the cloud (N, 3) float64, to be matched with any number of others.

        `name` is what an error calls it. Raises InputError when too few points are left at this voxel size.
        """
        return shape_of(points, self.descriptor, name)

    def register(
        self,
        source: np.ndarray,
        target: np.ndarray,
        *,
        seed: int = 0,
        names: tuple[str, str] = ("source", "target"),
    ) -> Registration:
        """Describe source (N, 3) and target (M, 3), each in metres in its own frame, and match them.

        Same clouds and seed: same result. Raises InputError as `describe` does.
        """
        clock = Clock()
        a, b = self.describe(source, names[0]), self.describe(target, names[1])
        clock.lap("describe")
        found = self.match(a, b, seed=seed)
        return replace(found, seconds=clock.seconds | found.seconds)

    def match(self, source: Shape, target: Shape, *, seed: int = 0) -> Registration:
        """Register described clouds: pair up features, estimate, refine, judge.

        A motion that is not believed is set aside with its matches and the next best is tried; the one
        with most confidence is returned. Same shapes and seed: same result.
        """
        clock = Clock()
        matched = self._pair_up(source, target)
        clock.lap("match")
        surfaces = source.surface, target.surface
        best = None
        left = np.ones(len(matched[0]), dtype=bool)
        for _ in range(self.attempts):
            estimate = ransac(
                *(side[left] for side in matched),
                distance=self.match_distance,
                iterations=self.iterations,
                seed=seed,
            )
            clock.lap("estimate")
            refined = refine(*surfaces, estimate.T_target_source, self.overlap_distance)
            clock.lap("refine")
            judged = self._judge(matched, surfaces, refined)
            clock.lap("judge")
            if best is None or judged.confidence > best.confidence:
                best = judged
            if best.registered:
                break
            left &= self._apart(matched, estimate.T_target_source) >= self.match_distance
        return replace(best, seconds=clock.seconds)

    def assess(self, source: Shape, target: Shape, T_target_source: np.ndarray) -> Registration:
        """Refine and judge a motion (4, 4) that comes from elsewhere, by the matches found here."""
        clock = Clock()
        matched, surfaces = self._pair_up(source, target), (source.surface, target.surface)
        clock.lap("match")
        refined = refine(*surfaces, T_target_source, self.overlap_distance)
        clock.lap("refine")
        judged = self._judge(matched, surfaces, refined)
        clock.lap("judge")
        return replace(judged, seconds=clock.seconds)

    def _pair_up(self, source: Shape, target: Shape) -> Sides:
        """The points (P, 3), (P, 3) whose features are each other's nearest."""
        pairs = mutual(source.features, target.features)
        return source.points[pairs[:, 0]], target.points[pairs[:, 1]]

    def _judge(self, matched: Sides, surfaces: Sides, refined: Refinement) -> Registration:
        """What the matches, the surfaces and the free space say about a motion."""
        T = refined.T_target_source
        agree = self._apart(matched, T) < self.match_distance
        inliers = int(agree.sum())
        shared = refined.overlap * len(surfaces[0]) / min(map(len, surfaces))
        verdict = judge(
            matches=len(matched[0]),
            inliers=inliers,
            overlap=min(shared, 1.0),
            intrusion=self._intrusion(*surfaces, T),
            rmse=refined.rmse,
            sensors_known=not any(viewpoint(points).any() for points in surfaces),
        )
        return Registration(
            T,
            verdict.registered,
            verdict.confidence,
            inliers,
            refined.overlap,
            refined.rmse,
            verdict.reason,
            seconds={},
            voxel=self.descriptor.voxel,
            agreeing=np.stack([side[agree] for side in matched], axis=1),
        )

    def _apart(self, matched: Sides, T_target_source: np.ndarray) -> np.ndarray:
        """The distance (P,) in metres between matched points after the motion."""
        return np.linalg.norm(transform(T_target_source, matched[0]) - matched[1], axis=1)

    def _intrusion(self, source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray) -> float:
        """How much of either cloud stands where the sensor of the other looked through.

        Where the sensor is not known the middle of the cloud stands for it. That is hard on some right
        motions, but without it two rooms on a map pass for one.
        """
        views = (
            (transform(T_target_source, source), target),
            (transform(inverse(T_target_source), target), source),
        )
        origins = [viewpoint(scan) for _, scan in views]
        return max(
            intrusion(points - origin, scan - origin, self.free_distance)
            for (points, scan), origin in zip(views, origins, strict=True)
        )
