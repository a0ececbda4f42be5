"""The end of mapping: what a single pair cannot decide is decided with the scans around it (submap.py)."""

from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from pcreg.mapping.graph import MAX_CLOSURE_VOXELS, MIN_LONE_CONFIDENCE, closed_triangles
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.joining import Motion
from pcreg.mapping.submap import Question, answered
from pcreg.registration.result import Registration
from pcreg.runtime.progress import progress

MIN_HELD_CONFIDENCE = 0.2  # in the place of a loose scan, below which its edges are dropped
MAX_PASSES = 5  # each makes maps larger, which decides more


class Settling:
    """Drops edges of loose scans that do not belong where they are, and joins maps that belong together."""

    def __init__(self, growing: GrowingMap, executor: Executor | None) -> None:
        self.growing, self.executor = growing, executor
        self.asked: set[tuple[object, ...]] = set()  # keys of the questions so far

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
        pairs = placement.map_pairs(growing.inliers)
        searches = [question for pair in pairs for question in placement.searches(*pair, growing.inliers)]
        found = [(placement.found(*each), each[1]) for each in self._ask(searches, "search")]
        motions = [motion for motion, _ in found] + growing.motions()
        questions = [
            question
            for pair in pairs
            for question in placement.verifications(placement.between(*pair, motions))
        ]
        verified = [(placement.found(*each), each[1]) for each in self._ask(questions, "join")]
        likely = [each for each in found if each[1].confidence >= MIN_LONE_CONFIDENCE]
        likely += [each for each in verified if each[1].registered]
        joined = False
        for pair in pairs:
            own = [each for each in likely if placement.ends(each[0]) == pair]
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

    def _ask(self, questions: Sequence[Question], what: str) -> list[tuple[Question, Registration]]:
        """The questions that were not asked before, in order, with their answers."""
        new = [question for question in questions if question.key not in self.asked]
        self.asked.update(question.key for question in new)
        answers = dict(progress(answered(self.executor, self.growing.context, new), what, len(new)))
        return [(question, answers[number]) for number, question in enumerate(new)]
