"""Decisions by submaps: wrong edges of a map are dropped, separate maps joined.

Where two places look alike, wrong edges confirm one another. So a map is divided into parts, each held
together by sure edges, and the edges between two parts are verified by submaps, one of each part. Among many
scans this is done after each round of pairs, too. Between two maps, hypotheses come from all pairs of their
scans, registered or refused, and from a search for scans of the smaller map in the larger one. The likeliest
hypotheses are verified by submaps as well: the scan of the smaller map that overlaps most with the larger
one, with the scans around it.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from pcreg.mapping.graph import Edge, Motion, components, solve
from pcreg.mapping.growing_map import GrowingMap
from pcreg.mapping.placement import Placement
from pcreg.mapping.proposal import map_pairs, matrix
from pcreg.mapping.submap import Question, answered, name_on_record
from pcreg.registration.judge.confidence import MIN_CONFIDENCE, posterior
from pcreg.runtime.progress import progress
from pcreg.runtime.workers import map_unordered

MIN_PART_CONFIDENCE = 0.9  # of submaps, from which two parts become one
MIN_HELD_CONFIDENCE = 0.65  # mean of submaps and the likeliest edge, below which parts are separated
MAX_PASSES = 5  # a further pass has larger maps, which decide more
MAX_PLACES = 3  # verified between two maps
MIN_CHANCE = 0.01  # confidence of a hypothesis about such a place
CONTRADICTED = "contradicts pairs that the scans around them confirm"
OUTWEIGHED = "contradicts likelier pairs between the same parts of a map"
SEVERED = "joins two parts of a map, and the scans around it refute that"
Joint = tuple[Motion, dict[str, Any]]  # a motion between two maps, and the verdict on it by submaps


class Consolidation:
    """Removal of edges that submaps refute, and joining of maps that belong together."""

    def __init__(self, growing: GrowingMap) -> None:
        self.growing = growing
        self.questions: dict[frozenset[Edge], Question | None] = {}  # on two parts, by all edges of both
        self.refused: list[Joint] = []  # the likeliest between maps that are not joined

    def run(self) -> None:
        for _ in range(MAX_PASSES):
            changed = self._join(searching=False) or self._join(searching=True)
            changed |= self.cut()
            if not changed:
                break
        for motion, answer in self.refused:
            ends = motion.source, motion.target
            if not {ends, ends[::-1]} & self.growing.edges.keys():
                self.growing.replace_record(motion, answer, registered=False)

    def cut(self) -> bool:
        """Drop edges between parts of a map that submaps refute; True if they changed.

        Sure edges hold a part together. Two parts become one if submaps confirm an edge between them. Then
        the other parts are verified again, as submaps of larger parts decide more.
        """
        growing = self.growing
        edges = [edge for pair, edge in growing.edges.items() if pair not in growing.contradicted]
        held = [edge for edge in edges if edge.sure]
        part_confidence, held_confidence = map(growing.needed, (MIN_PART_CONFIDENCE, MIN_HELD_CONFIDENCE))
        while True:
            refuted, places = self._between_parts(edges, held)
            sure = [place for place, answer in places if answer["confidence"] >= part_confidence]
            if not sure:
                break
            held += chain.from_iterable(sure)
        for place, answer in places:
            if (place[0].confidence + answer["confidence"]) / 2 < held_confidence:
                refuted |= {growing.pair_of(edge): f"{SEVERED}: {answer['reason']}" for edge in place}
        changed = refuted.keys() != growing.refuted.keys()
        growing.refuted = refuted
        growing.solve()
        return changed

    def _between_parts(
        self, edges: Sequence[Edge], held: Sequence[Edge]
    ) -> tuple[dict[tuple[int, int], str], list[tuple[list[Edge], dict[str, Any]]]]:
        """Compare the edges between parts of maps; `held` are the edges that hold parts together.

        Returns:
            The edges that others between the same parts outweigh, with the reason against each; and for each
            two parts the other edges between them, likeliest first, with the answer of their submaps.
        """
        growing = self.growing
        part = components(len(growing.scans), held)
        within = [edge for edge in edges if part[edge.source] == part[edge.target]]
        edges_of_part: dict[int, list[Edge]] = defaultdict(list)
        for edge in within:
            edges_of_part[part[edge.source]].append(edge)
        graph = solve(within, growing.probes, growing.voxel, growing.solved)
        placement = Placement(growing.scans, graph.poses, graph.component, within, growing.voxel)
        joining = [edge for edge in edges if part[edge.source] != part[edge.target]]
        outweighed: dict[tuple[int, int], str] = {}
        asked: list[tuple[list[Edge], Question]] = []
        for ends, motions in placement.between_maps(joining).items():
            if not placement.is_larger(*ends):
                continue
            place, *others = placement.places(motions)
            outweighed |= {growing.pair_of(each): OUTWEIGHED for each in chain.from_iterable(others)}
            own = [growing.edges[growing.pair_of(each)] for each in place]
            parts = (edges_of_part[part[end]] for end in (place[0].source, place[0].target))
            if (rests_on := frozenset(chain(own, *parts))) not in self.questions:
                self.questions[rests_on] = placement.joint(place)
            if question := self.questions[rests_on]:
                asked.append((own, question))
        answers = self._ask([question for _, question in asked])
        return outweighed, [(own, answer) for (own, _), (_, answer) in zip(asked, answers, strict=True)]

    def _join(self, *, searching: bool) -> bool:
        """Join maps by hypotheses on record and, if `searching`, by a search; True if any were joined."""
        growing, graph = self.growing, self.growing.graph
        placement = Placement(growing.scans, graph.poses, graph.component, growing.used(), growing.voxel)
        pairs = map_pairs(placement.component, growing.inliers)
        hypotheses = growing.motions() + (self._searched(placement, pairs) if searching else [])
        motions = placement.between_maps([each for each in hypotheses if each.confidence >= MIN_CHANCE])
        likely = [place for pair in pairs for place in placement.places(motions[pair])[:MAX_PLACES]]
        joints: dict[tuple[int, int], list[Joint]] = defaultdict(list)
        questions = [question for place in likely if (question := placement.joint(place))]
        for question, answer in self._ask(questions, "join"):
            motion = Motion(*question.ends, np.array(answer["T_target_source"]), answer["confidence"])
            joints[placement.ends(motion)].append((motion, answer))
        edges = placement.between_maps(list(growing.edges.values()))
        joined, self.refused = False, []
        for pair, found in joints.items():
            best, answer = max(found, key=lambda joint: joint[0].confidence)
            others = [motion for motion, _ in found if placement.contradicts(motion, best)]
            confidence = posterior([motion.confidence for motion in (best, *others)])[0]
            if confidence < growing.needed(MIN_CONFIDENCE):
                self.refused.append((best, answer))
                continue
            for edge in edges[pair]:
                if placement.contradicts(edge, best):
                    growing.contradicted[growing.pair_of(edge)] = CONTRADICTED
            growing.replace_record(best, answer, registered=True)
            joined = True
        growing.solve()
        return joined

    def _searched(self, placement: Placement, pairs: Sequence[tuple[int, int]]) -> list[Motion]:
        """Hypotheses about scans of one map around scans of another."""
        inliers = matrix(len(placement.component), self.growing.inliers)
        questions = [each for pair in pairs for each in placement.searches(*pair, inliers)]
        return [
            Motion(*question.ends, np.array(T), confidence)
            for question, hypotheses in self._ask(questions, "search")
            for T, confidence in hypotheses
        ]

    def _ask(self, questions: Sequence[Question], words: str = "") -> list[tuple[Question, Any]]:
        """Each question with its answer, from the records or computed, with a bar if there are words."""
        growing, kept = self.growing, self.growing.records.by_pair
        given = growing.work, growing.paths, growing.voxel
        names = {each: name_on_record(*given, each) for each in questions}
        new = {name: each for each, name in names.items() if name not in kept}.values()
        found = map_unordered(growing.executor, answered, given, new)
        for question, answer in progress(found, words, len(new)) if words else found:
            growing.records.add({"pair": names[question], "answer": answer})
        return [(each, kept[names[each]]["answer"]) for each in questions]
