"""Two clouds in, one Registration out: describe, match, estimate, refine, judge."""

import logging
from dataclasses import dataclass, replace

import numpy as np

from pcreg.features.base import Descriptor
from pcreg.geometry.planarity import has_surface
from pcreg.geometry.se3 import transform
from pcreg.geometry.viewpoint import ViewpointOption, check_viewpoint
from pcreg.registration.confidence import HANDCRAFTED, LEARNED, MIN_CANDIDATE_PROBABILITY, Verdict
from pcreg.registration.evidence import Evidence, gather_evidence
from pcreg.registration.free_space import FreeSpace
from pcreg.registration.icp import Refinement, refine
from pcreg.registration.matching import mutual_within_bound, pca_project
from pcreg.registration.preprocess import PreparedCloud, prepare
from pcreg.registration.ransac import ransac
from pcreg.registration.result import Registration
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.timer import Clock

log = logging.getLogger(__name__)

# Match distances: motions that move the source to within that of each other are one
MIN_CANDIDATE_SEPARATION = 2.0
NO_SURFACE = (
    "the points of the {} lie on no surface but fill space, as noise does, so that matches prove little"
)


@dataclass(frozen=True)
class Candidate:
    """A refined motion, and what speaks for it."""

    refined: Refinement
    evidence: Evidence
    agreeing: np.ndarray  # (inliers, 2, 3), the matches that it brings together


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
        attempts: int = 3,  # motions tried before the clouds are given up
        iterations: int = 1_000_000,  # samples of RANSAC: indoors 2 % of FPFH's matches may be right
        viewpoint: ViewpointOption = "auto",  # of clouds of which nothing else is said
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
        self.confidence_model = LEARNED if descriptor.fingerprint else HANDCRAFTED
        self.match_distance = match_reach * descriptor.voxel
        self.overlap_distance = overlap_reach * descriptor.voxel
        self.free_distance = free_reach * descriptor.voxel
        self.attempts = attempts
        self.iterations = iterations
        self.viewpoint = check_viewpoint(viewpoint)

    @property
    def name(self) -> str:
        """Of the descriptor; with `device` and `describe` all that keeping descriptions asks for."""
        return self.descriptor.name

    @property
    def device(self) -> str:
        return self.descriptor.device

    def describe(
        self, points: np.ndarray, name: str = "cloud", viewpoint: ViewpointOption | None = None
    ) -> PreparedCloud:
        """The cloud (N, 3) float64 prepared, to be matched with any number of others.

        `name` is what an error calls it, `viewpoint` says where the sensor stood (pcreg.geometry.viewpoint).
        Raises InputError when too few points are left at this voxel size.
        """
        log.info("describe: %s, %d points, voxel %g m", name, len(points), self.descriptor.voxel)
        return prepare(points, self.descriptor, name, self.viewpoint if viewpoint is None else viewpoint)

    def register(
        self,
        source: np.ndarray,
        target: np.ndarray,
        *,
        seed: int = 0,
        names: tuple[str, str] = ("source", "target"),
        viewpoints: tuple[ViewpointOption | None, ViewpointOption | None] = (None, None),
    ) -> Registration:
        """Describe source (N, 3) and target (M, 3), each in metres in its own frame, and match them.

        Same clouds and seed: same result. Raises InputError as `describe` does.
        """
        clock = Clock()
        clouds = zip((source, target), names, viewpoints, strict=True)
        a, b = parallel.each(lambda each: self.describe(*each), clouds)
        clock.lap("describe")
        found = self.match(a, b, seed=seed)
        return replace(found, seconds=clock.seconds | found.seconds)

    def match(self, source: PreparedCloud, target: PreparedCloud, *, seed: int = 0) -> Registration:
        """Register described clouds: pair up features, estimate, refine, judge.

        Same shapes and seed: same result.
        """
        clock = Clock()
        judged = self._judged(self.candidates(source, target, seed=seed, clock=clock), source, target)
        clock.lap("judge")
        return replace(judged, seconds=clock.seconds)

    def candidates(
        self, source: PreparedCloud, target: PreparedCloud, *, seed: int = 0, clock: Clock | None = None
    ) -> list[Candidate]:
        """The motions between described clouds that are worth judging, the likeliest first, at least one.

        A motion that is not believed is set aside with its matches, and the next best is sought. Against
        one that is believed an alternative is sought among the other matches: it has to come up within as
        many samples.
        """
        clock = clock or Clock()
        matched = self._pair_up(source, target)
        clock.lap("match")
        scans = source.surface, target.surface
        free_space = FreeSpace(*scans, self.free_distance, (source.viewpoint, target.viewpoint))
        left = np.ones(len(matched), dtype=bool)
        found: list[Candidate] = []

        def seek(iterations: int) -> int:
            estimate = ransac(
                matched[left, 0],
                matched[left, 1],
                distance=self.match_distance,
                iterations=iterations,
                seed=seed,
                free_space=free_space,
            )
            clock.lap("estimate")
            found.append(self._candidate(matched, source, target, estimate.T_target_source))
            clock.lap("refine")
            left[self._residuals(matched, estimate.T_target_source) < self.match_distance] = False
            return estimate.drawn

        for _ in range(self.attempts):
            drawn = seek(self.iterations)
            if self.confidence_model.probability(found[-1].evidence) > MIN_CANDIDATE_PROBABILITY:
                seek(drawn)
                break
        return self._distinct(found, source)

    def assess(
        self, source: PreparedCloud, target: PreparedCloud, T_target_source: np.ndarray
    ) -> Registration:
        """Refine and judge a motion (4, 4) that comes from elsewhere, by the matches found here."""
        clock = Clock()
        matched = self._pair_up(source, target)
        clock.lap("match")
        candidate = self._candidate(matched, source, target, T_target_source)
        clock.lap("refine")
        judged = self._judged([candidate], source, target)
        clock.lap("judge")
        return replace(judged, seconds=clock.seconds)

    def _pair_up(self, source: PreparedCloud, target: PreparedCloud) -> np.ndarray:
        """The points (P, 2, 3), of source and target, whose features are each other's nearest."""
        pairs = mutual_within_bound(*pca_project(source.features, target.features))
        return np.stack([source.points[pairs[:, 0]], target.points[pairs[:, 1]]], axis=1)

    def _candidate(
        self, matched: np.ndarray, source: PreparedCloud, target: PreparedCloud, T_target_source: np.ndarray
    ) -> Candidate:
        log.info("refine: %d points on %d", len(source.surface), len(target.surface))
        refined = refine(
            source.surface, target.surface, target.normals, T_target_source, self.overlap_distance
        )
        agree = self._residuals(matched, refined.T_target_source) < self.match_distance
        evidence = gather_evidence(source, target, agree, refined, self.free_distance)
        return Candidate(refined, evidence, matched[agree])

    def _residuals(self, matched: np.ndarray, T_target_source: np.ndarray) -> np.ndarray:
        """The distance (P,) in metres between matched points after the motion."""
        return np.linalg.norm(transform(T_target_source, matched[:, 0]) - matched[:, 1], axis=1)

    def _distinct(self, found: list[Candidate], source: PreparedCloud) -> list[Candidate]:
        """The candidates, most likely first, without those that move the source as a likelier one does."""
        distinct: list[Candidate] = []
        for candidate in sorted(found, key=lambda each: -self.confidence_model.probability(each.evidence)):
            moved = transform(candidate.refined.T_target_source, source.surface)
            for other in distinct:
                apart = moved - transform(other.refined.T_target_source, source.surface)
                if np.linalg.norm(apart, axis=1).mean() < MIN_CANDIDATE_SEPARATION * self.match_distance:
                    break
            else:
                distinct.append(candidate)
        return distinct

    def _judged(self, found: list[Candidate], source: PreparedCloud, target: PreparedCloud) -> Registration:
        """The first of the candidates with the verdict on it; the others are its alternatives."""
        best, *alternatives = found
        verdict = self.confidence_model.verdict(
            best.evidence, [alternative.evidence for alternative in alternatives]
        )
        if verdict.confidence > MIN_CANDIDATE_PROBABILITY:
            verdict = self._on_surfaces(verdict, source, target)
        return Registration(
            best.refined.T_target_source,
            verdict.registered,
            verdict.confidence,
            best.evidence.inliers,
            best.refined.overlap,
            best.refined.rmse,
            verdict.reason,
            seconds={},
            voxel=self.descriptor.voxel,
            evidence=best.evidence,
            alternative=alternatives[0].refined.T_target_source if verdict.ambiguous else None,
            agreeing=best.agreeing,
            viewpoints=tuple(each.viewpoint if each.viewpoint_known else None for each in (source, target)),
        )

    def _on_surfaces(self, verdict: Verdict, source: PreparedCloud, target: PreparedCloud) -> Verdict:
        """The verdict, or a refusal if one of the clouds has no surface.

        Evidence takes surfaces for granted: the normals of noise hold any motion, and its points touch all.
        """
        for side, shape in (("source", source), ("target", target)):
            if not has_surface(shape.surface, self.descriptor.voxel):
                confidence = min(verdict.confidence, MIN_CANDIDATE_PROBABILITY)
                return Verdict(False, confidence, NO_SURFACE.format(side), ambiguous=False)
        return verdict
