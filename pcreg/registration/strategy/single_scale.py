"""Registration at one voxel size: match, estimate, refine, judge."""

import logging
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pcreg.arrays import Array, Index, every_nth, like, take, to_host
from pcreg.features.base import Descriptor
from pcreg.geometry.normals import fills_space
from pcreg.geometry.se3 import mean_displacement, residuals, transform, turns
from pcreg.registration.clouds.preprocess import NORMAL_RADIUS, DescribedCloud
from pcreg.registration.estimation.agreement import DescriptorAgreement
from pcreg.registration.estimation.icp import MAX_ITERATIONS, Surface, refine
from pcreg.registration.estimation.ransac import ransac
from pcreg.registration.judge.confidence import ACCEPT_CONFIDENCE, MIN_LIKELY, ConfidenceModel, Verdict
from pcreg.registration.judge.covariance import covariance
from pcreg.registration.judge.evidence import Evidence, gather_evidence
from pcreg.registration.judge.free_space import FreeSpace
from pcreg.registration.judge.overlap import Overlap
from pcreg.registration.matching.nearest import Matches, match_within_bound, pca_project
from pcreg.registration.matching.prior import ANY, Prior
from pcreg.registration.result import Registration
from pcreg.runtime.progress import Clock

log = logging.getLogger(__name__)

MATCH_DISTANCE_VOXELS = 1.5  # between true partners after downsampling, at most
CONTACT_DISTANCE_VOXELS = 1.0  # points of a surface seen twice have a partner within one cell
FREE_SPACE_MARGIN_VOXELS = 4.0  # points further in front of a surface are not part of it
FIRST_MOTIONS = 2  # of the ranking, tried before all others
BRIEFLY = 1_000, 6  # points of the source and iterations of each stage of ICP in a brief refinement
# Share of its probability that a full refinement must keep: so 133 of 216 simulated pairs are right, else 130
MIN_KEPT_PROBABILITY = 0.5
MIN_FINISHED_PROBABILITY = 0.03  # of 206 simulated motions with less none gets over 0.06 by full refinement
MIN_KEPT_OVERLAP = 0.9  # share of the overlap that a turn of a symmetric source keeps
MIN_SEPARATION_DISTANCES = 2.0  # match distances between where two hypotheses put the source, on average
NO_SURFACE = "the points of the {} lie on no surface but fill space, as noise does: matches prove little"


class Hypothesis(NamedTuple):
    """A refined motion and the evidence about it."""

    T_target_source: np.ndarray  # (4, 4)
    evidence: Evidence
    inliers: np.ndarray  # (inliers, 2) int64, the matches that it brings together
    overlap: Overlap
    briefly: bool  # refined by few points and iterations, and not yet fully
    allowed: bool  # by the prior

    @property
    def probability(self) -> float:
        """Probability that the motion is right, as if it were the only hypothesis."""
        return ConfidenceModel.shipped().probability(self.evidence)


class _Pair(NamedTuple):
    """Two described clouds, and the comparisons that serve all motions between them."""

    source: DescribedCloud
    target: DescribedCloud
    matches: Matches
    points: np.ndarray  # (P, 2, 3), of the matches
    agreement: DescriptorAgreement
    free_space: FreeSpace
    clock: Clock


@dataclass(frozen=True)
class SingleScaleRegistrar:
    """Register described clouds; every length is a multiple of the voxel size."""

    descriptor: Descriptor
    sure: float = 0.9  # probability of one of the first motions from which no others are tried
    promising: float = 0.0  # the same, below which no others are tried either
    iterations: int = 1_000_000  # samples of RANSAC: indoors 2 % of FPFH's matches may be right
    prior: Prior = ANY  # between the clouds as they are described

    @property
    def voxel(self) -> float:
        return float(self.descriptor.voxel)

    @property
    def match_distance(self) -> float:
        return MATCH_DISTANCE_VOXELS * self.voxel

    def match(self, source: DescribedCloud, target: DescribedCloud, *, seed: int = 0) -> Registration:
        """Register described clouds. Same clouds and seed: same result."""
        pair = self._compared(source, target)
        best, *others = self._searched(pair, seed)
        return self._with_verdict(pair, [best, *self._turned(pair, best), *others])

    def assess(
        self, source: DescribedCloud, target: DescribedCloud, T: np.ndarray, *, turned: bool = False
    ) -> Registration:
        """The verdict on a motion (4, 4), after refinement; if `turned` its turns are alternatives."""
        pair = self._compared(source, target)
        (found,) = self._refined(pair, T[None])
        pair.clock.lap("refine")
        return self._with_verdict(pair, [found, *(self._turned(pair, found) if turned else [])])

    def verify(
        self,
        source: DescribedCloud,
        target: DescribedCloud,
        T_target_source: np.ndarray,
        max_correction: float,
        *,
        turned: bool = False,
    ) -> Registration:
        """The verdict on a motion (4, 4) from elsewhere, as by `assess`.

        Refused if refinement moves the source by more than `max_correction` metres. The evidence is then
        about the refined motion, which is the `alternative` if it is registered.
        """
        found = self.assess(source, target, T_target_source, turned=turned)
        correction = mean_displacement(source.surface, T_target_source, found.T_target_source)
        if correction <= max_correction:
            return found
        reason = (
            f"the given transform is {correction:.2g} m off on average, more than the {max_correction:.2g} m "
            "that refinement may correct; another transform fits the clouds"
        )
        return found.refused(
            min(found.confidence, 1 - found.confidence),
            reason if found.registered else found.reason,
            T_target_source=T_target_source,
            alternative=found.T_target_source if found.registered else None,
        )

    def hypotheses(
        self, source: DescribedCloud, target: DescribedCloud, *, seed: int = 0
    ) -> list[Hypothesis]:
        """The hypotheses about a pair, most likely first, at least one."""
        return self._searched(self._compared(source, target), seed)

    def all_hypotheses(self, source: DescribedCloud, target: DescribedCloud) -> list[Hypothesis]:
        """One hypothesis per proposed motion, in their order; the first ones are refined fully."""
        pair = self._compared(source, target)
        first, others = np.split(self._proposed(pair, seed=0), [FIRST_MOTIONS])
        return self._aligned(pair, first, briefly=False) + self._aligned(pair, others, briefly=True)

    def is_same(self, source: DescribedCloud, T: np.ndarray, other: np.ndarray) -> bool:
        """True if two motions (4, 4) put the source in about the same place."""
        distance = MIN_SEPARATION_DISTANCES * self.match_distance
        return mean_displacement(source.surface, T, other) < distance

    def _compared(self, source: DescribedCloud, target: DescribedCloud) -> _Pair:
        """Match the points whose features are mutual nearest neighbours; prepare other comparisons."""
        clock = Clock()
        matches = match_within_bound(*pca_project(source.features, target.features))
        clock.lap("match")
        viewpoints, margin = (source.viewpoint, target.viewpoint), FREE_SPACE_MARGIN_VOXELS * self.voxel
        return _Pair(
            source,
            target,
            matches,
            _matched(source.points, target.points, matches.rows),
            DescriptorAgreement(source, target, self.match_distance),
            FreeSpace(source.surface, target.surface, margin, viewpoints),
            clock,
        )

    def _searched(self, pair: _Pair, seed: int) -> list[Hypothesis]:
        """The hypotheses about a pair, most likely first, at least one.

        The two motions that rank first are refined briefly, and, unless one has the probability `sure` or
        none is `promising`, all others. The likeliest is then refined fully, unless its probability is small,
        or more than halved by that.
        """
        first, others = np.split(self._proposed(pair, seed), [FIRST_MOTIONS])
        pair.clock.lap("estimate")
        found = self._aligned(pair, first, briefly=True)
        if self.promising <= max(each.allowed * each.probability for each in found) < self.sure:
            found += self._aligned(pair, others, briefly=True)
        while (best := (found := self._distinct(found, pair.source))[0]).briefly:
            found[0] = self._finished(pair, best)
        pair.clock.lap("refine")
        return found

    def _turned(self, pair: _Pair, best: Hypothesis) -> list[Hypothesis]:
        """Hypotheses that differ from the best one, if likely, by a quarter or half turn of the source.

        Matches support one of the turns by chance: all get the inliers of the best, and surfaces decide.
        """
        if best.probability < MIN_LIKELY:
            return []
        source, index, few = pair.source.surface, Index(pair.target.surface, few=True), BRIEFLY[0]

        def near(T: np.ndarray) -> float:
            """Fraction of the source that a rough motion puts near the target."""
            distance = FREE_SPACE_MARGIN_VOXELS * self.voxel
            places = transform(T, every_nth(source, few))
            return float((index.query(places, max_distance=distance)[0] < distance).sum()) / len(places)

        least = MIN_KEPT_OVERLAP * near(best.T_target_source)
        motions = [T for T in best.T_target_source @ turns(to_host(source)) if near(T) >= least]
        matched = {"inliers": best.evidence.inliers, "inlier_thickness": best.evidence.inlier_thickness}
        return [
            each._replace(evidence=replace(each.evidence, **matched))
            for each in (self._refined(pair, np.stack(motions), briefly=True) if motions else [])
            if each.evidence.overlap >= MIN_KEPT_OVERLAP * best.evidence.overlap
            and not self.is_same(pair.source, each.T_target_source, best.T_target_source)
        ]

    def _proposed(self, pair: _Pair, seed: int) -> np.ndarray:
        """The motions (H, 4, 4) that the matches propose, H >= 1, the most promising first."""
        source, target = pair.source, pair.target
        return ransac(
            like(pair.points[:, 0], source.points),
            like(pair.points[:, 1], target.points),
            distance=self.match_distance,
            iterations=self.iterations,
            seed=seed,
            one_way=pair.matches.further_points(source.points, target.points),
            agreement=pair.agreement,
            free_space=pair.free_space,
            prior=self.prior.about(source.surface),
        )

    def _aligned(self, pair: _Pair, motions: np.ndarray, *, briefly: bool) -> list[Hypothesis]:
        """The hypotheses near motions (H, 4, 4), aligned by descriptors first."""
        return self._refined(pair, pair.agreement.refine(motions), briefly=briefly)

    def _refined(self, pair: _Pair, motions: np.ndarray, *, briefly: bool = False) -> list[Hypothesis]:
        """The hypotheses near motions (H, 4, 4)."""
        source, target = pair.source, pair.target
        log.info("refine: %d points on %d", len(source.surface), len(target.surface))
        points, iterations = BRIEFLY if briefly else (len(source.surface), MAX_ITERATIONS)
        distance, planes = CONTACT_DISTANCE_VOXELS * self.voxel, Surface(target.surface, target.normals)
        some = Surface(every_nth(source.surface, points), every_nth(source.normals, points))
        matched, partners = pair.points[:, 0], pair.points[:, 1]
        found, prior = [], self.prior.about(source.surface)
        for refined in refine(some, planes, motions, distance, iterations):
            T = refined.T_target_source
            overlap = Overlap.of(source.surface, *planes, T, distance)
            agree = residuals(T, matched, partners) < self.match_distance
            evidence = gather_evidence(
                source, target, refined, overlap, pair.free_space, len(agree), partners[agree]
            )
            allowed = not prior.violation(T)
            found.append(Hypothesis(T, evidence, pair.matches.rows[agree], overlap, briefly, allowed))
        return found

    def _finished(self, pair: _Pair, brief: Hypothesis) -> Hypothesis:
        """Refine the hypothesis fully, or leave it if that halves its probability, as with bent scans."""
        if brief.probability < MIN_FINISHED_PROBABILITY:
            return brief._replace(briefly=False)
        (full,) = self._refined(pair, brief.T_target_source[None])
        has_slid = full.probability < MIN_KEPT_PROBABILITY * brief.probability
        return brief._replace(briefly=False) if has_slid else full

    def _distinct(self, found: list[Hypothesis], source: DescribedCloud) -> list[Hypothesis]:
        """The hypotheses in places that differ: those that the prior allows first, then by probability."""
        distinct: list[Hypothesis] = []
        for hypothesis in sorted(found, key=lambda each: (not each.allowed, -each.probability)):
            T = hypothesis.T_target_source
            if not any(self.is_same(source, T, other.T_target_source) for other in distinct):
                distinct.append(hypothesis)
        return distinct

    def _with_verdict(self, pair: _Pair, hypotheses: list[Hypothesis]) -> Registration:
        """The first of the hypotheses with the verdict on it; others that are allowed are alternatives."""
        source, target, best = pair.source, pair.target, hypotheses[0]
        others = [other for other in hypotheses[1:] if other.allowed]
        verdict = ConfidenceModel.shipped().verdict(best.evidence, [other.evidence for other in others])
        if verdict.confidence > MIN_LIKELY:
            verdict = self._on_surfaces(verdict, source, target)
        pair.clock.lap("verdict")
        found = Registration(
            best.T_target_source,
            verdict.registered,
            verdict.confidence,
            verdict.reason,
            evidence=best.evidence,
            voxel=self.voxel,
            matches=_matched(source.rows, target.rows, best.inliers),
            matched_points=_matched(source.points, target.points, best.inliers),
            covariance=covariance(best.overlap, best.T_target_source, self.voxel),
            alternative=others[0].T_target_source if verdict.ambiguous else None,
            seconds=pair.clock.seconds,
        )
        violation = self.prior.about(source.surface).violation(best.T_target_source)
        return found.refused(0.0, violation) if violation else found

    def _on_surfaces(self, verdict: Verdict, source: DescribedCloud, target: DescribedCloud) -> Verdict:
        """The verdict, or a refusal if a cloud is noise without a surface, which the evidence assumes."""
        for side, cloud in (("source", source), ("target", target)):
            radius, is_doubtful = NORMAL_RADIUS * self.voxel, verdict.confidence < ACCEPT_CONFIDENCE
            if fills_space(cloud.surface, cloud.variation, radius, strict=is_doubtful):
                confidence = min(verdict.confidence, MIN_LIKELY)
                return Verdict(False, confidence, NO_SURFACE.format(side), ambiguous=False)
        return verdict


def _matched(source: Array, target: Array, matches: np.ndarray) -> np.ndarray:
    """Rows (P, 2, ...) of two arrays, on the host, in matches (P, 2)."""
    sides = zip((source, target), matches.T, strict=True)
    return np.stack([to_host(take(array, like(rows, array))) for array, rows in sides], axis=1)
