"""Decisions by submaps at the end of mapping: edges that are refuted, and maps that are joined."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from pcreg.mapping.graph import MAX_CLOSURE_VOXELS, MIN_LONE_CONFIDENCE, Edge, closed_triangles
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.joining import Motion, Placement
from pcreg.mapping.retrieval import map_pairs
from pcreg.mapping.submap import Question, answered
from pcreg.registration.result import Registration
from pcreg.runtime.progress import progress

# Confidence at its place below which a scan loses its edges; 32 right places in simulated rooms have 0.94
MIN_HELD_CONFIDENCE = 0.2
MAX_PASSES = 5  # larger maps decide more

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

    def _refute(self) -> bool:
        """Drop edges of weakly connected scans; returns if there were any."""
        growing = self.growing
        used, triangles = growing.used(), np.zeros(len(growing.scans), dtype=np.int64)
        own: dict[int, dict[int, Edge]] = defaultdict(dict)  # the edges of each scan, by its partner
        closed = closed_triangles(used, growing.probes, MAX_CLOSURE_VOXELS * growing.voxel)
        for edge, count in zip(used, closed, strict=True):
            for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
                triangles[end] += count
                own[end][other] = edge
        questions = growing.placement().weakly_connected(triangles // 2, own)
        dropped = {}
        for question, answer in self._ask(questions, "check"):
            if answer.confidence < MIN_HELD_CONFIDENCE:
                (scan,) = question.source.rows
                pairs = [(edge.source, edge.target) for edge in own[scan].values()]
                dropped |= dict.fromkeys(pairs, f"what is around the scan refutes it: {answer.reason}")
        growing.refuted |= dropped
        growing.solve()
        return bool(dropped)

    def _join(self) -> bool:
        """Join maps; returns if there were any."""
        growing, placement = self.growing, self.growing.placement()
        pairs = map_pairs(placement.component, growing.inliers)
        joints = self._searched(placement, pairs) + self._verified(placement, pairs)
        between: dict[tuple[int, int], list[Joint]] = defaultdict(list)
        for each in joints:
            between[placement.ends(each[0])].append(each)
        edges = placement.between_maps([Motion.of(edge) for edge in growing.edges.values()])
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

    def _searched(self, placement: Placement, pairs: Sequence[tuple[int, int]]) -> list[Joint]:
        """Scans of one map found in another with the confidence that a single edge needs."""
        questions = [each for pair in pairs for each in placement.searches(*pair, self.growing.inliers)]
        answers = self._ask(questions, "search")
        return [
            (placement.found(question, answer), answer)
            for question, answer in answers
            if answer.confidence >= MIN_LONE_CONFIDENCE
        ]

    def _verified(self, placement: Placement, pairs: Sequence[tuple[int, int]]) -> list[Joint]:
        """Motions of pairs of scans, registered or not, that the scans around both confirm."""
        motions = placement.between_maps(self.growing.motions())
        likely = [motion for pair in pairs for motion in placement.likely(motions[pair])]
        questions = [question for motion in likely for question in placement.verifications(motion)]
        answers = self._ask(questions, "join")
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
