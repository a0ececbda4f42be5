"""A map while it grows: scans, records of pairs, and the pose graph."""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

import numpy as np

from pcreg.mapping.graph import SURE_CONFIDENCE, Edge, Motion, PoseGraph, solve, symmetric
from pcreg.mapping.map import Map, MapEdge
from pcreg.mapping.odometry import steps
from pcreg.mapping.proposal import (
    PARTNER_ROUNDS,
    Values,
    candidates,
    map_pairs,
    matrix,
    partners_of_partners,
    probability_of,
    propose,
)
from pcreg.mapping.submap import Scan
from pcreg.registration.batch import Work, name_of
from pcreg.registration.clouds.local_frame import between_given, between_local
from pcreg.registration.judge.confidence import MIN_CONFIDENCE
from pcreg.registration.matching.prior import Prior
from pcreg.registration.matching.screening import KeypointFile, screen
from pcreg.runtime.errors import in_short
from pcreg.runtime.files import write_text
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import map_unordered

log = logging.getLogger(__name__)

SCREENED_TOGETHER = 8  # pairs, in 0.15 s: handing one to a worker costs the caller 0.7 ms
ROUND_PAIRS = 16  # at least, registered before the pose graph is solved again; else one per scan
MIN_ROUND = 0.02  # pairs per scan in a round: fewer are not worth solving all poses again
MAX_PAIRS_PER_SCAN = 5
# Between two maps with so many scans each, among many scans, a refused pair makes others unlikely: after a
# refusal 2 of 71 simulated pairs registered where the screening expected 31. With a map of one or two scans
# 10 of 74 did, where it expected 4. Among few scans more pairs pay: they place 452 instead of 435 of 540.
MIN_MAP_SCANS = 3
REFUSAL_FACTOR = 0.1  # of each refused pair, on the probability of others between the same maps
# Up to so many scans the confidence of a pair is used as it is. In simulated rooms that look alike the odds
# that a pair is right are 3 times those of its confidence with 264 scans, 0.45 times with 1,000, 0.23 with
# 2,000. With more scans submaps decide after each round: until the end wrong pairs would join most scans.
FEW_SCANS = 250
ScanPair = tuple[int, int]  # rows of source and target
DOUBTFUL = "among so many scans, some of which look alike, a pair needs more confidence"


def _screen(keypoints: KeypointFile, prior: Prior, pairs: Sequence[ScanPair]) -> list[int]:
    """The agreeing matches of each pair of scans."""
    return [screen(keypoints[source], keypoints[target], prior) for source, target in pairs]


class GrowingMap:
    """The scans, and the records of their pairs so far."""

    def __init__(
        self, work: Work, scans: dict[str, Scan], voxel: float, records: Records, executor: Executor | None
    ) -> None:
        """Begin with scans by path, described at `voxel` metres, and the records of pairs so far."""
        self.work, self.voxel, self.records, self.executor = work, voxel, records, executor
        self.paths, self.scans = tuple(scans), tuple(scans.values())
        self.probes = [scan.probes for scan in self.scans]
        self.inliers: Values = {}  # matches that agree, of the screened pairs
        self.answers: dict[ScanPair, dict[str, Any]] = {}  # records by source and target
        self.edges: dict[ScanPair, Edge] = {}  # of the registered pairs
        self.refuted: dict[ScanPair, str] = {}  # reasons against edges between the current parts of maps
        self.contradicted: dict[ScanPair, str] = {}  # reasons against edges that contradict a joint of maps
        self.solved: dict[Any, Any] = {}
        self.graph: PoseGraph = solve([], self.probes, self.voxel)

    def needed(self, confidence: float) -> float:
        """The confidence that a pair among all scans needs to be as reliable as `confidence` among few.

        The number of pairs that overlap grows with the number of scans, that of pairs that look alike by
        chance with its square.
        """
        odds = max(len(self.scans) / FEW_SCANS, 1.0) * confidence / (1 - confidence)
        return min(odds / (1 + odds), SURE_CONFIDENCE)

    def solve(self) -> None:
        """Solve the pose graph of the edges that nothing refutes."""
        self.graph = solve(self._standing(), self.probes, self.voxel, self.solved)

    def _standing(self) -> list[Edge]:
        left_out = self.refuted.keys() | self.contradicted.keys()
        return [edge for pair, edge in self.edges.items() if pair not in left_out]

    def _joining(self, pairs: Iterable[ScanPair]) -> dict[frozenset[int], list[ScanPair]]:
        """Group pairs between two maps, of three scans or more each, by these maps."""
        map_of, found = self.graph.component.tolist(), defaultdict(list)
        sizes = np.bincount(map_of)
        for pair in pairs:
            maps = frozenset(map_of[scan] for scan in pair)
            if len(maps) == 2 and sizes[list(maps)].min() >= MIN_MAP_SCANS:
                found[maps].append(pair)
        return found

    def pair_of(self, motion: Motion) -> ScanPair:
        """The registered pair between the scans of a motion, in the order on record."""
        ends = motion.source, motion.target
        return ends if ends in self.edges else ends[::-1]

    def used(self) -> list[Edge]:
        """The edges on which the poses rest."""
        return [edge for edge in self._standing() if edge not in self.graph.rejections]

    def follow(self) -> None:
        """Join each scan to the one before it by odometry; pairs of rejected steps are left to `register`."""
        found = steps(self.work, self.paths, self.scans, self.voxel, self.records)
        for n, record in progress(found, "odometry", len(self.scans) - 1):
            if record["registered"]:
                self._add_record(n, n - 1, record)
        self.solve()

    def register(self, after_round: Callable[[], object]) -> None:
        """Screen pairs and register the most promising ones; `after_round` places the scans anew."""
        keypoints = [scan.keypoints for scan in self.scans]
        sums = [each.checksum(self.work.prior) for each in keypoints]
        firsts = dict(zip(reversed(sums), reversed(self.paths), strict=True))
        originals = [(path, firsts[each]) for path, each in zip(self.paths, sums, strict=True)]
        copies = [f"{path}: holds the same points as {first}" for path, first in originals if path != first]
        if copies:
            log.warning(in_short(copies))
        stored = KeypointFile(keypoints, self.work.folder / "keypoints.bin")
        self._compare(stored, sums, candidates(keypoints))
        for _ in range(PARTNER_ROUNDS):
            self._compare(stored, sums, partners_of_partners(len(keypoints), self.inliers))
        for _ in progress(self._rounds(after_round), "register", self._pairs_left()):
            pass

    def _compare(self, keypoints: KeypointFile, sums: Sequence[str], pairs: Sequence[ScanPair]) -> None:
        """Screen pairs of scans. The folder keeps each count by the checksums of both, for later runs."""
        path, kept = self.work.folder / "screened.json", {}
        with suppress(OSError, ValueError, TypeError):
            kept = dict(json.loads(path.read_text()))
        name_of_pair = {pair: f"{sums[pair[0]]} {sums[pair[1]]}" for pair in pairs}
        todo = [pair for pair, name in name_of_pair.items() if name not in kept]
        batches = [todo[n : n + SCREENED_TOGETHER] for n in range(0, len(todo), SCREENED_TOGETHER)]
        found = map_unordered(self.executor, _screen, (keypoints, self.work.prior), batches)
        screened = (each for pairs, counts in found for each in zip(pairs, counts, strict=True))
        try:
            for pair, count in progress(screened, "screen", len(todo)):
                kept[name_of_pair[pair]] = count
        finally:
            if todo:
                write_text(path, json.dumps(kept))
        for pair, name in name_of_pair.items():
            self.inliers[pair] = self.inliers[pair[::-1]] = kept[name]

    def _rounds(self, after_round: Callable[[], object]) -> Iterator[ScanPair]:
        """Register pairs in rounds; yield each pair as it is done."""
        n = len(self.scans)
        while len(chosen := self._proposed(max(ROUND_PAIRS, n))) > MIN_ROUND * n:
            yield from self._answered(chosen)
            after_round()

    def _proposed(self, count: int) -> list[ScanPair]:
        """Up to `count` pairs without a record to register next."""
        n, used = len(self.scans), self.used()
        probability = probability_of(matrix(n, self.inliers)).tocoo()
        pairs = list(zip(*(ends.tolist() for ends in probability.coords), strict=True))
        done = self.answers.keys() | {pair[::-1] for pair in self.answers}
        probability.data *= [pair not in done for pair in pairs]
        probability.data *= self._factors(pairs)
        conductance = symmetric(n, used, np.array([edge.confidence for edge in used]))
        return propose(probability.tocsr(), conductance, min(count, self._pairs_left()))

    def _factors(self, pairs: Sequence[ScanPair]) -> list[float]:
        """Factors on the probabilities of pairs: among many scans below 1 after refusals between two maps.

        They are 0 between two maps that are not compared; see `map_pairs`.
        """
        many = len(self.scans) > FEW_SCANS
        refused = self._joining(self.answers.keys() - self.edges.keys() if many else ())
        compared = map(frozenset, map_pairs(self.graph.component, self.inliers))
        factors = dict.fromkeys(self._joining(pairs), 0.0)
        factors |= {maps: REFUSAL_FACTOR ** len(refused.get(maps, ())) for maps in compared}
        map_of = self.graph.component.tolist()
        return [factors.get(frozenset((map_of[a], map_of[b])), 1.0) for a, b in pairs]

    def _pairs_left(self) -> int:
        """Number of pairs that may still be registered."""
        n = len(self.scans)
        return max(min(MAX_PAIRS_PER_SCAN * n, n * (n - 1) // 2) - len(self.answers), 0)

    def _answered(self, chosen: Sequence[ScanPair]) -> Iterator[ScanPair]:
        """Register the pairs that are not on record, yield each, and add all in the order given."""
        named = {(self.paths[source], self.paths[target]): (source, target) for source, target in chosen}
        kept = self.records.by_pair
        new = (pair for pair in named if kept.get(name_of(pair), {}).get("stamp") != self.work.stamp(pair))
        # Pairs with few agreeing matches take longest: begun first, they end with the others of the round
        todo = dict.fromkeys(sorted(new, key=lambda pair: self.inliers[named[pair]]))
        yield from (ends for pair, ends in named.items() if pair not in todo)
        for pair, record in map_unordered(self.executor, Work.register, (self.work,), todo):
            self.records.add(record | {"pair": name_of(pair), "stamp": self.work.stamp(pair)})
            yield named[pair]
        for pair, (source, target) in named.items():
            self._add_record(source, target, self.records.by_pair[name_of(pair)])

    def _add_record(self, source: int, target: int, record: dict[str, Any]) -> None:
        self.answers[source, target] = record
        if record["registered"] and record["confidence"] >= self.needed(MIN_CONFIDENCE):
            T, covariance = self._local(source, target, record), np.array(record["local_covariance"])
            self.edges[source, target] = Edge(source, target, T, record["confidence"], covariance)

    def _local(self, source: int, target: int, record: dict[str, Any]) -> np.ndarray:
        """The motion (4, 4) of a record, between the local frames of the scans."""
        frames = self.scans[source].frame, self.scans[target].frame
        return between_local(np.array(record["T_target_source"]), *frames)

    def motions(self) -> list[Motion]:
        """The motions of all records, registered or not."""
        return [
            Motion(source, target, self._local(source, target, record), record["confidence"])
            for (source, target), record in self.answers.items()
            if "T_target_source" in record
        ]

    def replace_record(self, motion: Motion, answer: dict[str, Any], *, registered: bool) -> None:
        """Replace the record of a pair by the answer about the submaps around its scans."""
        source, target, T = motion.source, motion.target, motion.T_target_source
        for kept in (self.answers, self.edges, self.refuted, self.contradicted):
            kept.pop((source, target), None)
            kept.pop((target, source), None)
        if registered:
            covariance = np.array(answer["covariance"])
            self.edges[source, target] = Edge(source, target, T, motion.confidence, covariance, verified=True)
        self.answers[source, target] = {
            "registered": registered,
            "confidence": answer["confidence"],
            "reason": f"with the scans around both: {answer['reason']}",
            "T_target_source": between_given(T, self.scans[source].frame, self.scans[target].frame).tolist(),
        }

    def result(self, paths: Sequence[str], errors: dict[str, str]) -> Map:
        """The maps of the scans at `paths`."""
        self.records.order(sorted(self.records.by_pair))
        row_of = {path: row for row, path in enumerate(paths)}
        rows, component = [row_of[path] for path in self.paths], self.graph.component
        _, firsts, sizes = np.unique(component, return_index=True, return_counts=True)
        rank = np.argsort(np.argsort(-sizes, kind="stable"))  # the largest map first
        number = np.zeros(len(paths), dtype=np.int64)
        number[rows] = np.where(sizes > 1, 1 + rank, 0)[component]
        T_map_scan = np.tile(np.eye(4), (len(paths), 1, 1))
        for row, scan, pose, own in zip(rows, self.scans, self.graph.poses, component, strict=True):
            T_map_scan[row] = between_given(pose, scan.frame, self.scans[firsts[own]].frame)
        why = tuple(errors.get(path, "") for path in paths)
        return Map(tuple(paths), why, T_map_scan, number, tuple(self._map_edges(rows)), self.voxel)

    def _map_edges(self, rows: Sequence[int]) -> Iterator[MapEdge]:
        """Yield the pairs on record, by the `rows` (n,) of scans in the map, with reasons if unused."""
        reasons = dict.fromkeys(self.edges, "") | self.refuted | self.contradicted
        reasons |= {(edge.source, edge.target): why for edge, why in self.graph.rejections.items()}
        for (source, target), record in sorted(self.answers.items()):
            T = record.get("T_target_source")
            unused = reasons.get((source, target), DOUBTFUL if record["registered"] else "not registered")
            yield MapEdge(
                rows[source],
                rows[target],
                registered=record["registered"],
                confidence=record.get("confidence", 0.0),
                reason=record.get("reason") or record["error"],
                used=not unused,
                unused_because=unused,
                T_target_source=None if T is None else np.array(T),
            )
