"""A map while it grows: scans, records of pairs, and the pose graph."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from pcreg.geometry.se3 import adjoint
from pcreg.mapping.graph import UNCONFIRMED, Edge, Motion, PoseGraph, solve, symmetric
from pcreg.mapping.map import Map, MapEdge
from pcreg.mapping.placement import Placement
from pcreg.mapping.proposal import (
    PARTNER_ROUNDS,
    Retrieval,
    Values,
    map_pairs,
    matrix,
    probability_of,
    propose,
)
from pcreg.mapping.submap import Context, Scan
from pcreg.registration.batch import Pair, Work, name_of, stamp_of
from pcreg.registration.estimation.icp import Refinement
from pcreg.registration.judge.covariance import covariance
from pcreg.registration.judge.overlap import Overlap
from pcreg.registration.matching.prior import Prior
from pcreg.registration.matching.screening import KeypointFile, screen
from pcreg.registration.result import Registration
from pcreg.registration.strategy import gicp
from pcreg.runtime.errors import attempted
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import map_unordered

ROUND_PAIRS = 16  # registered before the pose graph is solved again, or half of the scans
MIN_ROUND = 0.02  # pairs per scan: fewer are not worth another solution
MAX_PAIRS_PER_SCAN = 5
MIN_MAP_SCANS = 3  # of both of two maps, for edges between them to need one another and refusals to count
# Left of the probability by each refused pair between two maps: of 71 further simulated ones 2 registered, 31
# were promised; of 74 with a map of one or two scans 10 did, 4 were promised
DOUBT = 0.1
STEP_CONFIDENCE = 0.99  # of accepted steps: the bounds let none of 81 wrong registrations pass (gicp.py)
UNPROVEN = "joins two maps, and the scans around it do not confirm that"


def _screen(keypoints: KeypointFile, prior: Prior, pair: tuple[int, int]) -> int:
    """The agreeing matches of two scans."""
    source, target = pair
    return screen(keypoints[source], keypoints[target], prior)


class GrowingMap:
    """The scans, and the records of their pairs so far."""

    def __init__(self, context: Context, scans: Sequence[Scan], records: Records) -> None:
        self.context, self.scans, self.records = context, scans, records
        self.work, self.paths, self.voxel = context.work, context.paths, context.voxel
        self.probes = [scan.probes for scan in scans]
        self.inliers: Values = {}  # matches that agree, of the screened pairs
        self.answers: dict[tuple[int, int], dict[str, Any]] = {}  # records by source and target
        self.edges: dict[tuple[int, int], Edge] = {}  # of the registered pairs
        self.refuted: dict[tuple[int, int], str] = {}  # the reasons against dropped edges
        self.unproven: set[tuple[int, int]] = set()  # edges that count once others join their maps
        self.alone: set[tuple[int, int]] = set()  # edges that count once another one agrees
        self.solved: dict[Any, Any] = {}
        self.graph: PoseGraph = solve([], self.probes, self.voxel)

    def solve(self) -> None:
        """Solve the pose graph of the edges that nothing refutes."""
        map_of = self.graph.component
        self.unproven = {pair for pair in self.unproven if map_of[pair[0]] != map_of[pair[1]]}
        self.alone = self._joining_alone()
        self.graph = solve(self._standing(), self.probes, self.voxel, self.solved)

    def _standing(self) -> list[Edge]:
        left_out = self.unproven | self.alone | self.refuted.keys()
        return [edge for pair, edge in self.edges.items() if pair not in left_out]

    def _joining_alone(self) -> set[tuple[int, int]]:
        """Edges that join two maps, are not certain, and with which no other agrees.

        If all counted, wrong ones would join most of many places, which takes minutes to sort out.
        """
        placement = Placement(self.scans, self.graph.poses, self.graph.component, (), self.voxel)
        left_out, found = self.unproven | self.refuted.keys(), set()
        for pairs in self._joining(pair for pair in self.edges if pair not in left_out).values():
            edges = [self.edges[pair] for pair in pairs]
            first = placement.ends(edges[0])
            motions = [edge if placement.ends(edge) == first else edge.inverted() for edge in edges]
            for pair, edge, motion in zip(pairs, edges, motions, strict=True):
                agreeing = sum(not placement.contradicts(motion, other) for other in motions)
                if agreeing == 1 and not edge.certain:
                    found.add(pair)
        return found

    def _joining(self, pairs: Iterable[tuple[int, int]]) -> dict[frozenset[int], list[tuple[int, int]]]:
        """The pairs of scans in two maps of three scans and more, by the maps."""
        map_of, found = self.graph.component.tolist(), defaultdict(list)
        sizes = np.bincount(map_of)
        for pair in pairs:
            maps = frozenset(map_of[scan] for scan in pair)
            if len(maps) == 2 and sizes[list(maps)].min() >= MIN_MAP_SCANS:
                found[maps].append(pair)
        return found

    def used(self) -> list[Edge]:
        """The edges on which the poses rest."""
        edges = zip(self._standing(), self.graph.rejections, strict=True)
        return [edge for edge, rejection in edges if not rejection]

    def follow(self) -> None:
        """Join each scan to the one before it by odometry; the pair of a rejected step is one like others."""
        found = _steps(self.work, self.paths, self.scans, self.voxel, self.records)
        for n, record in progress(found, "odometry", len(self.scans) - 1):
            if record["registered"]:
                self._take(n, n - 1, record)
        self.solve()

    def register(self, executor: Executor | None) -> None:
        """Screen pairs and register the most promising ones."""
        retrieval = Retrieval([scan.keypoints for scan in self.scans])
        self.keypoints = KeypointFile(retrieval.keypoints, self.work.folder / "keypoints.npy")
        self._compare(executor, retrieval.candidates())
        for _ in range(PARTNER_ROUNDS):
            self._compare(executor, retrieval.partners_of_partners(self.inliers))
        for _ in progress(self._rounds(executor), "register", self._pairs_left()):
            pass
        self._compare(executor, retrieval.further_candidates(self.graph.component, self.inliers))
        # None of these joins maps by itself: between two places so many are tried that wrong ones agree
        chosen = self._proposed(len(self.scans), self.graph.component)
        self.unproven.update(chosen)
        for _ in progress(self._answered(executor, chosen), "register", len(chosen)):
            pass

    def _compare(self, executor: Executor | None, pairs: Sequence[tuple[int, int]]) -> None:
        """Screen pairs of scans."""
        screened = map_unordered(executor, _screen, (self.keypoints, self.work.prior), pairs)
        for pair, count in progress(screened, "screen", len(pairs)):
            self.inliers[pair] = self.inliers[pair[::-1]] = count

    def _rounds(self, executor: Executor | None) -> Iterator[tuple[int, int]]:
        """Register pairs in rounds; each pair as it is done."""
        n = len(self.scans)
        while len(chosen := self._proposed(max(ROUND_PAIRS, n // 2), np.arange(n))) > MIN_ROUND * n:
            yield from self._answered(executor, chosen)
            self.solve()

    def _proposed(self, count: int, part: np.ndarray) -> list[tuple[int, int]]:
        """Up to `count` pairs without a record to register next, of scans in different parts (n,)."""
        n, used = len(self.scans), self.used()
        probability = probability_of(matrix(n, self.inliers)).tocoo()
        pairs = list(zip(*(ends.tolist() for ends in probability.coords), strict=True))
        done = self.answers.keys() | {pair[::-1] for pair in self.answers}
        probability.data *= [part[a] != part[b] and (a, b) not in done for a, b in pairs]
        probability.data *= self._shares_left(pairs)
        conductance = symmetric(n, used, np.array([edge.confidence for edge in used]))
        return propose(probability.tocsr(), conductance, min(count, self._pairs_left()))

    def _shares_left(self, pairs: Sequence[tuple[int, int]]) -> list[float]:
        """What is left of the probabilities of pairs: little after refusals, nothing of unlike maps."""
        refused = self._joining(pair for pair, record in self.answers.items() if not record["registered"])
        alike = map(frozenset, map_pairs(self.graph.component, self.inliers))
        shares = dict.fromkeys(self._joining(pairs), 0.0)
        shares |= {maps: DOUBT ** len(refused.get(maps, ())) for maps in alike}
        map_of = self.graph.component.tolist()
        return [shares.get(frozenset((map_of[a], map_of[b])), 1.0) for a, b in pairs]

    def _pairs_left(self) -> int:
        """Number of pairs that may still be registered."""
        n = len(self.scans)
        return max(min(MAX_PAIRS_PER_SCAN * n, n * (n - 1) // 2) - len(self.answers), 0)

    def _answered(
        self, executor: Executor | None, chosen: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Register the pairs that are not on record, and add all in the order given."""
        named: dict[Pair, tuple[int, int]] = {
            (self.paths[source], self.paths[target]): (source, target) for source, target in chosen
        }
        kept = self.records.by_pair
        todo = [pair for pair in named if kept.get(name_of(pair), {}).get("stamp") != stamp_of(pair)]
        yield from (ends for pair, ends in named.items() if pair not in todo)
        for pair, record in map_unordered(executor, Work.register, (self.work,), todo):
            self.records.add(record | {"pair": name_of(pair), "stamp": stamp_of(pair)})
            yield named[pair]
        for pair, (source, target) in named.items():
            self._take(source, target, self.records.by_pair[name_of(pair)])

    def _take(self, source: int, target: int, record: dict[str, Any]) -> None:
        self.answers[source, target] = record
        if record["registered"]:
            to_local = adjoint(self.scans[source].frame.T_local_given)
            covariance = to_local @ np.array(record["covariance"]) @ to_local.T
            T = self._local(source, target, record)
            self.edges[source, target] = Edge(source, target, T, record["confidence"], covariance)

    def _local(self, source: int, target: int, record: dict[str, Any]) -> np.ndarray:
        """The motion (4, 4) of a record, between the local frames of the scans."""
        a, b = self.scans[source].frame, self.scans[target].frame
        return b.T_local_given @ np.array(record["T_target_source"]) @ a.T_given_local

    def motions(self) -> list[Motion]:
        """The motions of all records, registered or not."""
        return [
            Motion(source, target, self._local(source, target, record), record["confidence"])
            for (source, target), record in self.answers.items()
            if "T_target_source" in record
        ]

    def take(self, motion: Motion, answer: Registration, *, registered: bool) -> None:
        """Replace the record of a pair by the answer about the submaps around its scans."""
        source, target = motion.source, motion.target
        for kept in (self.answers, self.edges, self.refuted):
            kept.pop((source, target), None)
            kept.pop((target, source), None)
        self.unproven -= {(source, target), (target, source)}
        if registered:
            T, confidence = motion.T_target_source, answer.confidence
            self.edges[source, target] = Edge(source, target, T, confidence, answer.covariance, verified=True)
        a, b = self.scans[source].frame, self.scans[target].frame
        self.answers[source, target] = {
            "registered": registered,
            "confidence": answer.confidence,
            "reason": f"with the scans around both: {answer.reason}",
            "T_target_source": (b.T_given_local @ motion.T_target_source @ a.T_local_given).tolist(),
        }

    def result(self, paths: Sequence[str], errors: dict[str, str]) -> Map:
        """The maps of the scans at `paths`."""
        self.records.order(sorted(self.records.by_pair))
        local, component = self.graph.poses, self.graph.component
        sizes = np.bincount(component)
        number = np.zeros(len(sizes), dtype=np.int64)  # the largest map first; 0 of a scan alone
        ranked = [each for each in np.argsort(-sizes, kind="stable") if sizes[each] > 1]
        number[ranked] = np.arange(1, len(ranked) + 1)
        row_of = {path: row for row, path in enumerate(paths)}
        T_map_scan = np.tile(np.eye(4), (len(paths), 1, 1))
        numbers = np.zeros(len(paths), dtype=np.int64)
        _, firsts = np.unique(component, return_index=True)  # scans whose pose is the identity
        for row, own in enumerate(component):
            first, place = self.scans[firsts[own]].frame, row_of[self.paths[row]]
            T_map_scan[place] = first.T_given_local @ local[row] @ self.scans[row].frame.T_local_given
            numbers[place] = number[own]
        reasons = dict.fromkeys(self.unproven & self.edges.keys(), UNPROVEN) | self.refuted
        reasons |= dict.fromkeys(self.alone, UNCONFIRMED)
        reasons |= {
            (edge.source, edge.target): reason
            for edge, reason in zip(self._standing(), self.graph.rejections, strict=True)
        }
        edges = []
        for pair, record in sorted(self.answers.items()):
            unused = reasons.get(pair, "not registered")
            edges.append(
                MapEdge(
                    *(row_of[self.paths[end]] for end in pair),
                    record["registered"],
                    record.get("confidence", 0.0),
                    record.get("reason") or record["error"],
                    not unused,
                    unused,
                    np.array(record["T_target_source"]) if "T_target_source" in record else None,
                )
            )
        why = tuple(errors.get(path, "") for path in paths)
        return Map(tuple(paths), why, T_map_scan, numbers, tuple(edges), self.voxel)


def _steps(
    work: Work, paths: Sequence[str], scans: Sequence[Scan], voxel: float, records: Records
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number n and record of each step of odometry from scan n to n - 1; `voxel` in metres.

    A step begins with the motion of the step before, or from rest if that fails.
    """
    motion, before = np.eye(4), None
    for n, pair in enumerate(zip(paths[1:], paths[:-1], strict=True), start=1):
        name = f"odometry: {name_of(pair)}"
        record = records.by_pair.get(name)
        if record is None or record["stamp"] != stamp_of(pair):
            target = before or _prepared(work, pair[1], voxel)
            before = source = _prepared(work, pair[0], voxel)
            record = _step((source, target), motion, scans[n], scans[n - 1], voxel, pair)
            records.add(record | {"pair": name, "stamp": stamp_of(pair)})
        else:
            before = None
        motion = np.array(record["T_target_source"]) if record["registered"] else np.eye(4)
        yield n, record


def _prepared(work: Work, path: str, voxel: float) -> gicp.Scan | str:
    """The scan, or the error why it cannot be used."""
    found, error = attempted(lambda: gicp.Scan(work.cloud(path).cloud.points, voxel, path))
    return found or error


def _step(
    sides: tuple[gicp.Scan | str, ...], guess: np.ndarray, a: Scan, b: Scan, voxel: float, pair: Pair
) -> dict[str, Any]:
    """The record of one step, from scan a to b."""
    record = {"source": pair[0], "target": pair[1], "registered": False, "confidence": 0.0, "error": ""}
    for side in sides:
        if isinstance(side, str):
            return record | {"reason": f"odometry: {side}"}
    fit = gicp.register_from(*sides, guess, np.eye(4))
    if rejection := fit.rejection():
        return record | {"reason": f"odometry: the scans {rejection}"}
    local = b.frame.T_local_given @ fit.T_target_source @ a.frame.T_given_local
    overlap = Overlap.of(a.surface, b.surface, b.normals, local, voxel)
    found = covariance(overlap, Refinement(local, fit.overlap, 0.0, voxel))
    to_given = adjoint(a.frame.T_given_local)
    return record | {
        "registered": True,
        "confidence": STEP_CONFIDENCE,
        "reason": f"odometry: {fit.overlap:.0%} of the scan lies on the one before it",
        "T_target_source": fit.T_target_source.tolist(),
        "covariance": (to_given @ found @ to_given.T).tolist(),
    }
