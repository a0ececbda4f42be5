"""Decisions by submaps at the end of mapping: edges that are refuted, and maps that are joined.

Where two places look alike, wrong edges confirm one another. So the parts of a map that sure edges hold
together are verified against one another. Between two maps, hypotheses come from all pairs of their scans,
registered or refused, and from scans of the smaller map that are searched in the other one. Under the
likeliest, the scans of the smaller map that would touch the other one are verified there as a submap.
"""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import chain
from typing import Any

from pcreg.mapping.graph import Edge, Motion, components, solve
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.placement import Placement
from pcreg.mapping.proposal import map_pairs, matrix
from pcreg.mapping.submap import Question, answered
from pcreg.registration.judge.confidence import MIN_CONFIDENCE, posterior
from pcreg.registration.result import Registration
from pcreg.runtime.progress import progress

# Of a part of a map at its place in another: from the first on both are one, below the second they are apart.
# A single edge between them, which no other one confirms, needs what any pair needs to be registered.
MIN_PART_CONFIDENCE, MIN_HELD_CONFIDENCE = 0.9, 0.5
MAX_PASSES = 5  # larger maps decide more
CONTRADICTED = "contradicts pairs that the scans around them confirm"
SEVERED = "joins two parts of a map, and the scans around it refute that"
Joint = tuple[Motion, Registration]  # a place of one map in another, and the answer of a submap about it


class Consolidation:
    """Drops edges between parts of a map that submaps refute, and joins maps that belong together."""

    def __init__(self, growing: GrowingMap, executor: Executor | None) -> None:
        self.growing, self.executor = growing, executor
        self.answers: dict[tuple[object, ...], Any] = {}  # by the keys of the questions
        self.refused: list[Joint] = []  # the likeliest between maps that are not joined

    def run(self) -> None:
        for _ in range(MAX_PASSES):
            changed = self._cut()
            changed |= self._join(searching=False) or self._join(searching=True)
            if not changed:
                break
        for motion, answer in self.refused:
            ends = motion.source, motion.target
            if not {ends, ends[::-1]} & self.growing.edges.keys():
                self.growing.replace_record(motion, answer, registered=False)

    def _cut(self) -> bool:
        """Drop the edges between two parts of a map if a submap refutes them; returns if there were any.

        A part is what sure edges hold together. Two parts become one if a submap confirms their place, and
        then the others are verified again: the larger the parts, the more a submap says.
        """
        growing, used = self.growing, self.growing.used()
        held = [edge for edge in used if edge.sure]
        while True:
            cuts = self._cuts(used, held)
            sure = [cut for cut, answer in cuts if answer.confidence >= MIN_PART_CONFIDENCE]
            if not sure:
                break
            held += chain.from_iterable(sure)
        refuted = {
            (edge.source, edge.target): f"{SEVERED}: {answer.reason}"
            for cut, answer in cuts
            if answer.confidence < (MIN_HELD_CONFIDENCE if len(cut) > 1 else MIN_CONFIDENCE)
            for edge in cut
        }
        growing.refuted |= refuted
        growing.solve()
        return bool(refuted)

    def _cuts(self, used: Sequence[Edge], held: Sequence[Edge]) -> list[tuple[list[Edge], Registration]]:
        """The edges between each two parts, which those `held` hold together, and a submap's answer."""
        growing = self.growing
        part = components(len(growing.scans), held)
        within = [edge for edge in used if part[edge.source] == part[edge.target]]
        graph = solve(within, growing.probes, growing.voxel, growing.solved)
        placement = Placement(growing.scans, graph.poses, graph.component, within, growing.voxel)
        cuts: dict[frozenset[int], list[Edge]] = defaultdict(list)
        for edge in used:
            if part[edge.source] != part[edge.target]:
                cuts[frozenset(placement.ends(edge))].append(edge)
        questions = placement.joints(max(cut, key=lambda edge: edge.confidence) for cut in cuts.values())
        return [
            (cuts[frozenset(placement.component[list(question.ends)].tolist())], answer)
            for question, answer in self._ask(questions, "check")
        ]

    def _join(self, *, searching: bool) -> bool:
        """Join maps by hypotheses on record, or also by those of a search; returns if there were any."""
        growing, graph = self.growing, self.growing.graph
        placement = Placement(growing.scans, graph.poses, graph.component, growing.used(), growing.voxel)
        pairs = map_pairs(placement.component, growing.inliers)
        hypotheses = growing.motions() + (self._searched(placement, pairs) if searching else [])
        motions = placement.between_maps(hypotheses)
        likely = [motion for pair in pairs for motion in placement.likely(motions[pair])]
        joints: dict[tuple[int, int], list[Joint]] = defaultdict(list)
        for question, answer in self._ask(placement.joints(likely), "join"):
            motion = Motion(*question.ends, answer.T_target_source, answer.confidence)
            joints[placement.ends(motion)].append((motion, answer))
        edges = placement.between_maps(list(growing.edges.values()))
        joined, self.refused = False, []
        for pair, found in joints.items():
            best, answer = max(found, key=lambda joint: joint[0].confidence)
            others = [motion for motion, _ in found if placement.contradicts(motion, best)]
            if posterior([motion.confidence for motion in (best, *others)])[0] < MIN_CONFIDENCE:
                self.refused.append((best, answer))
                continue
            for edge in edges[pair]:
                if placement.contradicts(edge, best):
                    ends = edge.source, edge.target
                    growing.refuted[ends if ends in growing.edges else ends[::-1]] = CONTRADICTED
            growing.replace_record(best, answer, registered=True)
            joined = True
        growing.solve()
        return joined

    def _searched(self, placement: Placement, pairs: Sequence[tuple[int, int]]) -> list[Motion]:
        """Hypotheses about scans of one map around scans of another."""
        inliers = matrix(len(placement.component), self.growing.inliers)
        questions = [each for pair in pairs for each in placement.searches(*pair, inliers)]
        return [
            Motion(*question.ends, T, confidence)
            for question, hypotheses in self._ask(questions, "search")
            for T, confidence in hypotheses
        ]

    def _ask(self, questions: Sequence[Question], words: str) -> list[tuple[Question, Any]]:
        """The questions with their answers; none is computed twice."""
        new = list({each.key: each for each in questions if each.key not in self.answers}.values())
        found = progress(answered(self.executor, self.growing.context, new), words, len(new))
        self.answers |= {new[number].key: answer for number, answer in found}
        return [(question, self.answers[question.key]) for question in questions]
