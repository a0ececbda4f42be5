"""Decisions by submaps at the end of mapping: edges that are refuted, and maps that are joined.

A weakly connected scan is compared with all that its map has around it. Between two maps, hypotheses come
from all pairs of their scans, registered or refused, and from scans of the smaller map that are searched in
regions of the other one. The likeliest motions between the maps are put to the vote: each scan of the smaller
map that would touch the other one is verified there against the scans that it would touch.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pcreg.geometry.se3 import inverse
from pcreg.mapping.graph import (
    MAX_CLOSURE_VOXELS,
    Motion,
    closed_triangles,
    displacement,
    symmetric,
    weak_joints,
)
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.proposal import map_pairs, matrix
from pcreg.mapping.submap import Question, Scan, Submap, answered, most_overlapping, overlaps
from pcreg.registration.judge.confidence import posterior
from pcreg.registration.result import Registration
from pcreg.runtime import cached_property
from pcreg.runtime.progress import progress

MIN_HELD_CONFIDENCE = 0.5  # at their place, below which a scan, or a part that few pairs join, loses edges
MIN_JOINT_CONFIDENCE = 0.9  # of a place: of 4 simulated ones between 0.8 and 0.9 2 are wrong, above 2 of 27
MAX_PASSES = 5  # larger maps decide more
MIN_TRIANGLES = 3  # closed by the edges of a scan, below which it is weakly connected
MIN_OVERLAP = 0.05  # of a scan with another one that is around it
MAX_AROUND = 6  # scans around one
MAX_NEAR = 12  # scans around either end of a motion of which those are chosen that touch others
MAX_SEARCHED = 4  # scans of a map that are searched in another
MAX_REGIONS = 3  # of a map in which a scan is searched
MAX_MOTIONS = 3  # verified between two maps
MIN_MOTION_CONFIDENCE = 0.01  # of a hypothesis that is verified
MAX_VOTERS = 4  # scans of a map that are verified in a place
# Probability of a place before a scan is verified there; and of a vote at least: fragments are bent
PRIOR, MIN_VOTE = 0.2, 0.02
CONTRADICTED = "contradicts pairs that the scans around them confirm"
SEVERED = "joins two parts of a map that few pairs join, and the scans around them refute that"


class Joint:
    """A place of one map in another, verified by a submap as a whole and by a vote of its scans."""

    def __init__(self, answers: Sequence[tuple[Question, Registration]]) -> None:
        found = [
            (Motion(*question.ends, each.T_target_source, each.confidence), each)
            for question, each in answers
        ]
        self.ranked = sorted(found, key=lambda each: -each[0].confidence)
        self.motion = self.ranked[0][0]
        (whole, _), *votes = found
        likely = np.maximum([vote.confidence for vote, _ in votes], MIN_VOTE)
        odds = np.prod(likely / (1 - likely)) * (1 / PRIOR - 1) ** (len(likely) - 1)
        self.confidence = max(whole.confidence, float(odds / (1 + odds)))  # that the place is right


class Consolidation:
    """Drops edges of scans that the scans around refute, and joins maps that belong together."""

    def __init__(self, growing: GrowingMap, executor: Executor | None) -> None:
        self.growing, self.executor = growing, executor
        self.answers: dict[tuple[object, ...], Any] = {}  # by the keys of the questions
        self.refused: list[Joint] = []  # the likeliest between maps that are not joined

    def run(self) -> None:
        for _ in range(MAX_PASSES):
            changed = self._refute() | self._cut()
            changed |= self._join(searching=False) or self._join(searching=True)
            if not changed:
                break
        for motion, answer in (joint.ranked[0] for joint in self.refused):
            ends = motion.source, motion.target
            if not {ends, ends[::-1]} & self.growing.edges.keys():
                self.growing.take(motion, answer, registered=False)

    def _placement(self) -> "Placement":
        growing = self.growing
        edges, component = growing.used(), growing.graph.component
        linked = symmetric(len(component), edges, np.ones(len(edges)))
        return Placement(
            growing.scans, growing.graph.poses, component, linked + linked @ linked, growing.voxel
        )

    def _refute(self) -> bool:
        """Drop edges of weakly connected scans; returns if there were any."""
        growing = self.growing
        used, triangles = growing.used(), np.zeros(len(growing.scans), dtype=np.int64)
        partners: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)  # with the edges to them
        closed = closed_triangles(used, growing.probes, MAX_CLOSURE_VOXELS * growing.voxel)
        for edge, count in zip(used, closed, strict=True):
            for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
                triangles[end] += count
                partners[end][other] = edge.source, edge.target
        questions = self._placement().weakly_connected(triangles // 2, partners)
        dropped = {}
        for question, answer in self._ask(questions, "check"):
            if answer.confidence < MIN_HELD_CONFIDENCE:
                reason = f"what is around the scan refutes it: {answer.reason}"
                dropped |= dict.fromkeys(partners[question.ends[0]].values(), reason)
        growing.refuted |= dropped
        growing.solve()
        return bool(dropped)

    def _cut(self) -> bool:
        """Drop the few edges between two parts of a map if submaps refute them; returns if there were any."""
        growing = self.growing
        cuts = [cut for cut in weak_joints(growing.used()) if not any(edge.verified for edge in cut)]
        growing.refuted |= {(edge.source, edge.target): SEVERED for cut in cuts for edge in cut}
        growing.solve()
        placement, changed = self._placement(), False
        ballots = [placement.ballot(max(cut, key=lambda edge: edge.confidence)) for cut in cuts]
        for cut, joint in zip(cuts, self._joints(ballots, "check"), strict=True):
            if joint and joint.confidence < MIN_HELD_CONFIDENCE:
                changed = True
                continue
            for edge in cut:
                del growing.refuted[edge.source, edge.target]
        growing.solve()
        return changed

    def _join(self, *, searching: bool) -> bool:
        """Join maps by hypotheses on record, or also by those of a search; returns if there were any."""
        growing, placement = self.growing, self._placement()
        pairs = map_pairs(placement.component, growing.inliers)
        hypotheses = growing.motions() + (self._searched(placement, pairs) if searching else [])
        motions = placement.between_maps(hypotheses)
        likely = [(pair, motion) for pair in pairs for motion in placement.likely(motions[pair])]
        ballots = [placement.ballot(motion) for _, motion in likely]
        joints: dict[tuple[int, int], list[Joint]] = defaultdict(list)
        for (pair, _), joint in zip(likely, self._joints(ballots, "join"), strict=True):
            if joint:
                joints[pair].append(joint)
        edges = placement.between_maps(list(growing.edges.values()))
        joined, self.refused = False, []
        for pair, found in joints.items():
            best = max(found, key=lambda joint: joint.confidence)
            others = [each for each in found if placement.contradicts(each.motion, best.motion)]
            confidence = posterior([joint.confidence for joint in (best, *others)])[0]
            taken = [each for each in best.ranked[::-1] if each[0].confidence > MIN_HELD_CONFIDENCE]
            if confidence < MIN_JOINT_CONFIDENCE or not taken:
                self.refused.append(best)
                continue
            for edge in edges[pair]:
                if placement.contradicts(edge, best.motion):
                    ends = edge.source, edge.target
                    growing.refuted[ends if ends in growing.edges else ends[::-1]] = CONTRADICTED
            for motion, answer in taken:
                growing.take(motion, answer, registered=True)
            joined = True
        growing.solve()
        return joined

    def _searched(self, placement: "Placement", pairs: Sequence[tuple[int, int]]) -> list[Motion]:
        """Hypotheses about scans of one map in regions of another."""
        inliers = matrix(len(placement.component), self.growing.inliers)
        questions = [each for pair in pairs for each in placement.searches(*pair, inliers)]
        return [
            Motion(*question.ends, T, confidence)
            for question, hypotheses in self._ask(questions, "search")
            for T, confidence in hypotheses
        ]

    def _joints(self, ballots: Sequence[Sequence[Question]], words: str) -> list[Joint | None]:
        """The places that the ballots verify; None for an empty ballot."""
        answers = iter(self._ask([question for ballot in ballots for question in ballot], words))
        return [Joint(list(islice(answers, len(ballot)))) if ballot else None for ballot in ballots]

    def _ask(self, questions: Sequence[Question], words: str) -> list[tuple[Question, Any]]:
        """The questions with their answers; none is computed twice."""
        new = [question for question in questions if question.key not in self.answers]
        found = progress(answered(self.executor, self.growing.context, new), words, len(new))
        self.answers |= {new[number].key: answer for number, answer in found}
        return [(question, self.answers[question.key]) for question in questions]


@dataclass(frozen=True)
class Placement:
    """The scans in the maps that they form so far."""

    scans: Sequence[Scan]
    poses: np.ndarray  # (n, 4, 4)
    component: np.ndarray  # (n,) int64
    linked: csr_array  # (n, n), not 0 of scans that one edge joins, or two
    voxel: float  # metres

    @cached_property
    def overlap(self) -> csr_array:
        """Overlap of each two scans that are linked, (n, n): others drift against each other."""
        found = overlaps(self.scans, self.poses, self.component, self.voxel)
        return found.multiply(self.linked != 0).tocsr()

    @cached_property
    def members(self) -> list[np.ndarray]:
        """The scans of each map, ascending."""
        order = np.argsort(self.component, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.component))[:-1])

    def around(self, scan: int) -> list[int]:
        """Up to six scans that overlap most with one, without it."""
        return most_overlapping(self.overlap, scan, MAX_AROUND, MIN_OVERLAP)

    def weakly_connected(
        self, triangles: np.ndarray, partners: Mapping[int, Iterable[int]]
    ) -> list[Question]:
        """Questions whether scans of few `triangles` (n,) lie on those around, and on their `partners`."""
        sizes = np.bincount(self.component)
        questions = []
        for scan in np.flatnonzero((triangles < MIN_TRIANGLES) & (sizes[self.component] > 2)).tolist():
            others = list(dict.fromkeys([*self.around(scan), *partners[scan]]))
            target = Submap.of(others, self.poses)
            T = inverse(self.poses[others[0]]) @ self.poses[scan]
            questions.append(Question(Submap.of([scan], self.poses), target, T))
        return questions

    def searches(self, smaller: int, larger: int, inliers: csr_array) -> list[Question]:
        """Questions about the place in regions of the larger map of scans that agree most with it."""
        own, others = self.members[smaller], self.members[larger]
        agree = inliers[np.ix_(own, others)].toarray()
        questions = []
        for place in np.argsort(-agree.max(1), kind="stable")[:MAX_SEARCHED]:
            regions: list[list[int]] = []
            for best in np.argsort(-agree[place], kind="stable"):
                if len(regions) == MAX_REGIONS or not agree[place, best]:
                    break
                if not any(others[best] in region for region in regions):
                    regions.append([int(others[best]), *self.around(others[best])])
            source = Submap.of([int(own[place])], self.poses)
            questions += [Question(source, Submap.of(region, self.poses)) for region in regions]
        return questions

    def between_maps(self, motions: Sequence[Motion]) -> dict[tuple[int, int], list[Motion]]:
        """The motions and their inverses, by the maps of source and target."""
        found: dict[tuple[int, int], list[Motion]] = defaultdict(list)
        for motion in [*motions, *(motion.inverted() for motion in motions)]:
            found[self.ends(motion)].append(motion)
        return found

    def ends(self, motion: Motion) -> tuple[int, int]:
        """The maps of source and target."""
        return int(self.component[motion.source]), int(self.component[motion.target])

    def likely(self, motions: Sequence[Motion]) -> list[Motion]:
        """Up to three motions to verify: the likeliest of each place, places by the sum of their votes."""
        places: list[list[Motion]] = []
        for motion in sorted(motions, key=lambda motion: -motion.confidence):
            if motion.confidence < MIN_MOTION_CONFIDENCE:
                break
            same = next((place for place in places if self._alike(motion, place[0])), None)
            same.append(motion) if same else places.append([motion])
        places.sort(key=lambda place: -sum(motion.confidence for motion in place))
        return [place[0] for place in places[:MAX_MOTIONS]]

    def ballot(self, motion: Motion) -> list[Question]:
        """Verifications, under a motion, of the submap and the scans that overlap most with another map."""
        own, there = (
            [end, *most_overlapping(self.overlap, end, MAX_NEAR, MIN_OVERLAP)]
            for end in (motion.source, motion.target)
        )
        T = self.poses[motion.target] @ motion.T_target_source @ inverse(self.poses[motion.source])
        poses = np.concatenate([T @ self.poses[own], self.poses[there]])
        scans = [self.scans[row] for row in own + there]
        found = overlaps(scans, poses, np.zeros(len(scans), dtype=np.int64), self.voxel)
        shared = found[: len(own), len(own) :].toarray()
        questions = []
        for voter in np.argsort(-shared.max(1), kind="stable")[:MAX_VOTERS]:
            nearest = np.argsort(-shared[voter])[: MAX_AROUND + 1]
            touched = [n for n in nearest if shared[voter, n] >= MIN_OVERLAP]
            if touched:
                target = Submap.of([there[n] for n in touched], self.poses)
                place = inverse(self.poses[target.rows[0]]) @ T @ self.poses[own[voter]]
                parts = [[own[voter]]]
                if not questions:
                    parts.insert(0, [own[voter], *self.around(own[voter])])
                questions += [Question(Submap.of(part, self.poses), target, place) for part in parts]
        return questions

    def contradicts(self, one: Motion, other: Motion) -> bool:
        """True for motions between the same maps that put one of them in different places."""
        return self.ends(one) == self.ends(other) and not self._alike(one, other)

    def _alike(self, one: Motion, other: Motion) -> bool:
        """True for motions that put the map of their sources in about the same place."""
        moved = [
            self.poses[each.target] @ each.T_target_source @ inverse(self.poses[each.source])
            for each in (one, other)
        ]
        moved = [T @ self.poses[one.source] for T in moved]
        return displacement(*moved, self.scans[one.source].probes) < MAX_CLOSURE_VOXELS * self.voxel
