"""The end of mapping: what a single pair cannot decide is decided with the scans around it (submap.py)."""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from pcreg.mapping.graph import MAX_CLOSURE_VOXELS, MIN_LONE_CONFIDENCE, closed_triangles
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.joining import Motion, Placement
from pcreg.mapping.retrieval import map_pairs
from pcreg.mapping.submap import Question, answered
from pcreg.registration.result import Registration
from pcreg.runtime.progress import progress

# In the place of a loose scan, below which its edges are dropped; 32 right ones in simulated rooms have 0.94
MIN_HELD_CONFIDENCE = 0.2
MAX_PASSES = 5  # each makes maps larger, which decides more


class Settling:
    """Drops edges of loose scans that do not belong where they are, and joins maps that belong together."""

    def __init__(self, growing: GrowingMap, executor: Executor | None) -> None:
        self.growing, self.executor = growing, executor
        self.answers: dict[tuple[object, ...], Registration] = {}  # by the keys of the questions

    def run(self) -> None:
        for _ in range(MAX_PASSES):
            changed = self._refute_loose()
            changed |= self._join()
            if not changed:
                return

    def _refute_loose(self) -> bool:
        """Whether edges of a scan were dropped."""
        growing = self.growing
        used, triangles = growing.used(), np.zeros(len(growing.scans), dtype=np.int64)
        partners: list[list[int]] = [[] for _ in growing.scans]
        closed = closed_triangles(used, growing.probes, MAX_CLOSURE_VOXELS * growing.voxel)
        for edge, count in zip(used, closed, strict=True):
            for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
                triangles[end] += count
                partners[end].append(other)
        questions = growing.placement().loose(triangles // 2, partners)
        dropped = {}
        for question, answer in self._ask(questions, "check"):
            if answer.confidence < MIN_HELD_CONFIDENCE:
                (scan,) = question.source.rows
                own = [(edge.source, edge.target) for edge in used if scan in (edge.source, edge.target)]
                dropped |= dict.fromkeys(own, f"what is around the scan refutes it: {answer.reason}")
        growing.refuted |= dropped
        growing.solve()
        return bool(dropped)

    def _join(self) -> bool:
        """Whether maps were joined."""
        growing, placement = self.growing, self.growing.placement()
        pairs = map_pairs(placement.component, growing.inliers)
        joints = self._searched(placement, pairs) + self._verified(placement, pairs)
        joined = False
        for pair in pairs:
            own = [each for each in joints if placement.ends(each[0]) == pair]
            joint, answer = max(own, key=lambda each: each[1].confidence, default=(None, None))
            if joint and not any(placement.contradicts(other, joint) for other, _ in own):
                growing.refuted |= {
                    (edge.source, edge.target): "contradicts a pair that the scans around it confirm"
                    for edge in growing.edges.values()
                    if placement.contradicts(Motion.of(edge), joint)
                }
                growing.take_verified(joint, answer)
                joined = True
        growing.solve()
        return joined

    def _searched(
        self, placement: Placement, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[Motion, Registration]]:
        """Scans of one map that are found in another as surely as an edge alone has to be."""
        questions = [each for pair in pairs for each in placement.searches(*pair, self.growing.inliers)]
        answers = self._ask(questions, "search")
        return [
            (placement.found(question, answer), answer)
            for question, answer in answers
            if answer.confidence >= MIN_LONE_CONFIDENCE
        ]

    def _verified(
        self, placement: Placement, pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[Motion, Registration]]:
        """The motions that pairs of scans say, registered or not, where the scans around confirm them."""
        motions = self.growing.motions()
        likely = [each for pair in pairs for each in placement.likely(placement.between(*pair, motions))]
        questions = [question for motion in likely for question in placement.verifications(motion)]
        answers = self._ask(questions, "join")
        confirmed = []
        for (there, answer), (_, back) in zip(answers[::2], answers[1::2], strict=True):
            if answer.registered and back.registered:
                confirmed.append((placement.found(there, answer), answer))
        return confirmed

    def _ask(self, questions: Sequence[Question], what: str) -> list[tuple[Question, Registration]]:
        """The questions with their answers; those that were asked before are not asked again."""
        new = [question for question in questions if question.key not in self.answers]
        found = progress(answered(self.executor, self.growing.context, new), what, len(new))
        self.answers |= {new[number].key: answer for number, answer in found}
        return [(question, self.answers[question.key]) for question in questions]
