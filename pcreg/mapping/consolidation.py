"""Decisions by submaps at the end of mapping: edges that are refuted, and maps that are joined.

A weakly connected scan is compared with all that its map has around it. Maps are joined by a motion between
two of their scans, even of a refused pair, if each scan lies on what is around the other; or by a scan of the
smaller map that is found in the other one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pcreg.geometry.se3 import inverse
from pcreg.mapping.graph import (
    MAX_CLOSURE_VOXELS,
    MIN_LONE_CONFIDENCE,
    Motion,
    closed_triangles,
    displacement,
)
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.proposal import map_pairs
from pcreg.mapping.refinement import most_overlapping, overlaps
from pcreg.mapping.submap import Question, Scan, Submap, answered
from pcreg.registration.result import Registration
from pcreg.runtime import cached_property
from pcreg.runtime.progress import progress

# Confidence at its place below which a scan loses its edges; 32 right places in simulated rooms have 0.94
MIN_HELD_CONFIDENCE = 0.2
MAX_PASSES = 5  # larger maps decide more
MIN_TRIANGLES = 3  # closed by the edges of a scan, below which it is weakly connected
MIN_OVERLAP = 0.05  # of a scan with another one that is around it
MAX_AROUND = 6  # scans around one
MAX_REGION = 50  # scans of a map in which a scan is searched
MAX_SEARCHED = 8  # scans of a map that are searched in another
MAX_MOTIONS = 3  # verified between two maps
MIN_MOTION_CONFIDENCE = 0.1  # of a motion that is verified

Joint = tuple[Motion, Registration]


class Consolidation:
    """Drops edges of scans that the scans around refute, and joins maps that belong together."""

    def __init__(self, growing: GrowingMap, executor: Executor | None) -> None:
        self.growing, self.executor = growing, executor
        self.answers: dict[tuple[object, ...], Registration] = {}  # by the keys of the questions

    def run(self) -> None:
        for _ in range(MAX_PASSES):
            changed = self._refute()
            changed |= self._join()
            if not changed:
                return

    def _placement(self) -> "Placement":
        growing = self.growing
        return Placement(growing.scans, growing.refined(), growing.graph.component, growing.voxel)

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
                (scan,) = question.source.rows
                reason = f"what is around the scan refutes it: {answer.reason}"
                dropped |= dict.fromkeys(partners[scan].values(), reason)
        growing.refuted |= dropped
        growing.solve()
        return bool(dropped)

    def _join(self) -> bool:
        """Join maps; returns if there were any."""
        growing, placement = self.growing, self._placement()
        pairs = map_pairs(placement.component, growing.inliers)
        joints = self._searched(placement, pairs) + self._verified(placement, pairs)
        between: dict[tuple[int, int], list[Joint]] = defaultdict(list)
        for each in joints:
            between[placement.ends(each[0])].append(each)
        edges = placement.between_maps(list(growing.edges.values()))
        joined = False
        for pair in pairs:
            joint, answer = max(between[pair], key=lambda each: each[1].confidence, default=(None, None))
            if joint and not any(placement.contradicts(other, joint) for other, _ in between[pair]):
                against = "contradicts a pair that the scans around it confirm"
                for edge in edges[pair]:
                    if placement.contradicts(edge, joint):
                        ends = edge.source, edge.target
                        growing.refuted[ends if ends in growing.edges else ends[::-1]] = against
                growing.take_verified(joint, answer)
                joined = True
        growing.solve()
        return joined

    def _searched(self, placement: "Placement", pairs: Sequence[tuple[int, int]]) -> list[Joint]:
        """Scans of one map found in another with the confidence that a single edge needs."""
        questions = [each for pair in pairs for each in placement.searches(*pair, self.growing.inliers)]
        return [
            (placement.found(question, answer), answer)
            for question, answer in self._ask(questions, "search")
            if answer.confidence >= MIN_LONE_CONFIDENCE
        ]

    def _verified(self, placement: "Placement", pairs: Sequence[tuple[int, int]]) -> list[Joint]:
        """Motions of pairs of scans, registered or not, that the scans around both confirm."""
        motions = placement.between_maps(self.growing.motions())
        likely = [motion for pair in pairs for motion in placement.likely(motions[pair])]
        answers = self._ask([each for motion in likely for each in placement.verifications(motion)], "join")
        return [
            (placement.found(there, answer), answer)
            for (there, answer), (_, back) in zip(answers[::2], answers[1::2], strict=True)
            if answer.registered and back.registered
        ]

    def _ask(self, questions: Sequence[Question], words: str) -> list[tuple[Question, Registration]]:
        """The questions with their answers; none is computed twice."""
        new = [question for question in questions if question.key not in self.answers]
        found = progress(answered(self.executor, self.growing.context, new), words, len(new))
        self.answers |= {new[number].key: answer for number, answer in found}
        return [(question, self.answers[question.key]) for question in questions]


@dataclass(frozen=True)
class Placement:
    """The scans in the maps that they form so far."""

    scans: Sequence[Scan]
    poses: np.ndarray  # (n, 4, 4), jointly refined
    component: np.ndarray  # (n,) int64
    voxel: float  # metres

    @cached_property
    def overlap(self) -> csr_array:
        """Overlap of each two scans of one map, (n, n)."""
        return overlaps(self.scans, self.poses, self.component, self.voxel)

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

    def searches(self, smaller: int, larger: int, inliers: np.ndarray) -> list[Question]:
        """Questions about the place in the larger map of scans of the smaller one that agree most with it."""
        own, others = self.members[smaller], self.members[larger]
        agree = inliers[np.ix_(own, others)]
        best = agree.max(1)
        chosen = [place for place in np.argsort(-best, kind="stable")[:MAX_SEARCHED] if best[place] > 0]
        return [
            Question(
                Submap.of([int(own[place])], self.poses),
                Submap.of(self._nearest(int(others[agree[place].argmax()]), others), self.poses),
            )
            for place in chosen
        ]

    def _nearest(self, scan: int, members: np.ndarray) -> list[int]:
        """A scan, and those of these members whose middles are nearest to its own."""
        distance = np.linalg.norm(self._middles[members] - self._middles[scan], axis=1)
        return [scan, *(row for row in members[np.argsort(distance)].tolist() if row != scan)][:MAX_REGION]

    @cached_property
    def _middles(self) -> np.ndarray:
        """The middle of each scan in the frame of its map, (n, 3)."""
        middles = [np.append(scan.probes.mean(0), 1) for scan in self.scans]
        return np.array([(T @ middle)[:3] for T, middle in zip(self.poses, middles, strict=True)])

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
        """Up to three motions to verify: the one with most confidence of each place."""
        distinct: list[Motion] = []
        for motion in sorted(motions, key=lambda motion: -motion.confidence):
            if motion.confidence < MIN_MOTION_CONFIDENCE or len(distinct) == MAX_MOTIONS:
                break
            if not any(self._alike(motion, other) for other in distinct):
                distinct.append(motion)
        return distinct

    def verifications(self, motion: Motion) -> list[Question]:
        """Check a joint both ways: each scan against the submap around the other; both have to confirm."""
        return [
            Question(
                Submap.of([each.source], self.poses),
                Submap.of([each.target, *self.around(each.target)], self.poses),
                each.T_target_source,
            )
            for each in (motion, motion.inverted())
        ]

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

    def found(self, question: Question, answer: Registration) -> Motion:
        """The motion of a scan that was found to the scan of the other map with which it overlaps most."""
        (source,), members = question.source.rows, question.target.rows
        poses = np.concatenate([answer.T_target_source[None], question.target.poses])
        scans = [self.scans[row] for row in (source, *members)]
        shared = overlaps(scans, poses, np.zeros(len(scans), dtype=np.int64), self.voxel)[[0]].toarray()
        best = int(shared[0, 1:].argmax())
        T = inverse(question.target.poses[best]) @ answer.T_target_source
        return Motion(source, members[best], T, answer.confidence)
