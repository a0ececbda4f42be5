"""Scans without poses into maps: describe, screen, register pair by pair, optimise, refine.

Each scan is described once, in a folder that worker processes share, and every pair is screened. Then pairs
are registered in rounds, those first that promise most to fix where scans are to each other, by the one road
of `Registrar.register`; after each round the pose graph is solved with what is known. Rounds have a fixed
size, so that the answer does not depend on the number of workers. A run that was stopped continues.
"""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from pcreg.geometry.se3 import adjoint
from pcreg.mapping.graph import Edge, PoseGraph, solve
from pcreg.mapping.map import Map, MapEdge
from pcreg.mapping.proposal import probability_of, propose
from pcreg.mapping.refinement import refine_jointly
from pcreg.mapping.retrieval import candidates
from pcreg.mapping.scan import Scan
from pcreg.mapping.sequence import steps
from pcreg.registration import batch
from pcreg.registration.batch import Pair, Work, device_of, examined_files, name_of, registered, stamp_of
from pcreg.registration.gicp import small_gicp
from pcreg.registration.inputs import ViewpointOption, check_viewpoint
from pcreg.registration.prior import ANY, Prior
from pcreg.registration.registrar import Registrar
from pcreg.registration.screening import Sketch, screen
from pcreg.registration.stored import CloudFile, NotDescribed, StoredCloud
from pcreg.runtime.code_fingerprint import code_fingerprint
from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import Workers, executor_of, map_unordered

log = logging.getLogger(__name__)

ROUND_PAIRS = 16  # registered before the pose graph is solved again, or a quarter of the scans
MAX_PAIRS_PER_SCAN = 5


def run(
    registrar: Registrar,
    paths: Sequence[str],
    folder: Path,
    *,
    unit: str = "m",
    viewpoint: ViewpointOption = "auto",
    columns: int | None = None,
    prior: Prior = ANY,
    sequence: bool = False,
    seed: int = 0,
    workers: Workers = None,
) -> Map:
    """The map of the scans in these files, in any order.

    The `prior` holds between every two of them, such as a vertical. Of a `sequence` each scan is joined to
    the one before it by odometry, which needs small_gicp, and the sensor at the origin of each scan.
    Descriptions and the records of pairs are kept in `folder`, and pairs recorded there are not done again.
    Raises InputError if fewer than two scans are named or can be used, and for settings that differ from
    those of the records.
    """
    if len(set(paths)) < 2:
        raise InputError(f"{len(set(paths))} scans are no map; name two or more")
    option = check_viewpoint(viewpoint)
    if sequence:
        small_gicp()  # refused before anything is read
    settings = {
        "descriptor": registrar.descriptor,
        "weights": registrar.fingerprint,
        "voxel": registrar.voxel,
        "unit": unit,
        "viewpoint": option if isinstance(option, str) else np.asarray(option).tolist(),
        "columns": columns,
        "seed": seed,
        "prior": prior.to_dict(),
        "sequence": sequence,
        "device": device_of(registrar),
        "code": code_fingerprint(batch.__name__),  # records are answers of pairs, as those of a batch are
    }
    records = Records(folder / "pairs.jsonl", settings, "name another folder with --out")
    with executor_of(workers) as executor:
        files = [CloudFile(path, unit, columns, option) for path in paths]
        found = examined_files(executor, files, True)
        work = Work(registrar, found, folder / "descriptions", seed, prior)
        scans, errors, voxel = _described(executor, work, paths)
        usable = [path for path in paths if path in scans]
        if len(usable) < 2:
            raise InputError(
                f"{len(usable)} of {len(paths)} scans can be used; {next(iter(errors.values()))}"
            )
        mapping = _Mapping(work, usable, [scans[path] for path in usable], voxel, records)
        if sequence:
            mapping.follow()
        mapping.register(executor)
    return mapping.result(paths, errors)


def common_scale(registrar: Registrar, voxels: Sequence[float]) -> tuple[float, float]:
    """The voxel size in metres at which scans of these sizes are screened, and the size that it suits."""
    if registrar.voxel is not None:
        return registrar.voxel, registrar.voxel
    own = float(np.sort(voxels)[len(voxels) // 2])
    return registrar.usable([own])[0], own


def _described(
    executor: Executor | None, work: Work, paths: Sequence[str]
) -> tuple[dict[str, Scan], dict[str, str], float]:
    """The scans by path, why others cannot be used, and the voxel size in metres of the scans."""
    errors = {path: work.files[path].error for path in paths if work.files[path].error}
    todo = [path for path in paths if path not in errors]
    voxel, own = common_scale(work.registrar, [work.files[path].voxel for path in todo])
    scans = {}
    while todo:
        described = map_unordered(executor, _describe, (work.for_workers(), voxel, own), todo)
        todo = []
        for path, answer in progress(described, "describe", len(paths) - len(errors)):
            if isinstance(answer, NotDescribed):
                work.keep(answer)
                todo.append(path)
            elif isinstance(answer, str):
                errors[path] = answer
            else:
                scans[path] = answer
    return scans, errors, voxel


def _describe(work: Work, voxel: float, own: float, path: str) -> Scan | str | NotDescribed:
    """One scan, why it cannot be used, or what is missing for it."""
    cloud = StoredCloud(work.files[path], work.folder)
    try:
        return Scan.of(cloud.at(work.registrar.at(voxel, own)), cloud.frame, voxel)
    except NotDescribed as missing:
        return missing
    except OutputError:
        raise
    except InputError as error:
        return str(error)


def _screen(sketches: Sequence[Sketch], prior: Prior, pair: tuple[int, int]) -> int:
    """The agreeing matches of two scans."""
    source, target = pair
    return screen(sketches[source], sketches[target], prior)


class _Mapping:
    """The scans, and the answers of their pairs so far."""

    def __init__(
        self, work: Work, paths: Sequence[str], scans: Sequence[Scan], voxel: float, records: Records
    ) -> None:
        self.work, self.paths, self.scans, self.voxel, self.records = work, paths, scans, voxel, records
        self.probes = [scan.probes for scan in scans]
        self.answers: dict[tuple[int, int], dict[str, Any]] = {}
        self.edges: list[Edge] = []
        self.graph: PoseGraph = solve([], self.probes, voxel)

    def follow(self) -> None:
        """Join each scan to the one before it by odometry, where that is accepted."""
        found = steps(self.work, self.paths, self.scans, self.voxel, self.records)
        for n, record in progress(found, "odometry", len(self.scans) - 1):
            if record["registered"]:
                self._take(n, n - 1, record)
        self.graph = solve(self.edges, self.probes, self.voxel)

    def register(self, executor: Executor | None) -> None:
        """Screen all pairs and register those that promise most."""
        n = len(self.scans)
        inliers = np.zeros((n, n), dtype=np.int64)
        sketches = [scan.sketch for scan in self.scans]
        pairs = candidates(sketches)
        screened = map_unordered(executor, _screen, (sketches, self.work.prior), pairs)
        for (source, target), count in progress(screened, "screen", len(pairs)):
            inliers[source, target] = inliers[target, source] = count
        promise = probability_of(inliers)
        for _ in progress(self._rounds(executor, promise), "register", MAX_PAIRS_PER_SCAN * n):
            pass

    def _rounds(self, executor: Executor | None, promise: np.ndarray) -> Iterator[tuple[int, int]]:
        """Each pair as it is done."""
        n = len(self.scans)
        while (left := MAX_PAIRS_PER_SCAN * n - len(self.answers)) > 0:
            probability, conductance = promise.copy(), np.zeros((n, n))
            for a, b in self.answers:
                probability[a, b] = probability[b, a] = 0
            for edge, reason in zip(self.edges, self.graph.rejections, strict=True):
                if not reason:
                    ends = edge.source, edge.target
                    conductance[ends] = conductance[ends[::-1]] = edge.confidence
            chosen = propose(probability, conductance, min(max(ROUND_PAIRS, n // 4), left))
            if not chosen:
                return
            yield from self._answered(executor, chosen)
            self.graph = solve(self.edges, self.probes, self.voxel)

    def _answered(
        self, executor: Executor | None, chosen: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Register the pairs that are not on record, and take in all in the order given."""
        named: dict[Pair, tuple[int, int]] = {
            (self.paths[source], self.paths[target]): (source, target) for source, target in chosen
        }
        known = self.records.by_pair
        todo = [pair for pair in named if known.get(name_of(pair), {}).get("stamp") != stamp_of(pair)]
        yield from (named[pair] for pair in named if pair not in todo)
        for pair, record in registered(executor, self.work, todo):
            self.records.add(record | {"pair": name_of(pair), "stamp": stamp_of(pair)})
            yield named[pair]
        for pair, (source, target) in named.items():
            self._take(source, target, self.records.by_pair[name_of(pair)])

    def _take(self, source: int, target: int, record: dict[str, Any]) -> None:
        self.answers[source, target] = record
        if record["registered"]:
            self.edges.append(self._edge(source, target, record))

    def _edge(self, source: int, target: int, record: dict[str, Any]) -> Edge:
        a, b = self.scans[source], self.scans[target]
        T = b.frame.T_local_given @ np.array(record["T_target_source"]) @ a.frame.T_given_local
        to_local = adjoint(a.frame.T_local_given)
        covariance = to_local @ np.array(record["covariance"]) @ to_local.T
        return Edge(source, target, T, record["confidence"], covariance)

    def result(self, paths: Sequence[str], errors: dict[str, str]) -> Map:
        """The maps of the scans at `paths`, jointly refined."""
        self.records.order(sorted(self.records.by_pair))
        local = refine_jointly(self.scans, self.graph.poses, self.graph.component, self.voxel)
        number = _map_numbers(self.graph.component)
        row_of = {path: row for row, path in enumerate(paths)}
        T_map_scan = np.tile(np.eye(4), (len(paths), 1, 1))
        numbers = np.zeros(len(paths), dtype=np.int64)
        for component in np.unique(self.graph.component):
            (members,) = np.nonzero(self.graph.component == component)
            first = self.scans[members[0]].frame  # its pose is the identity
            for row in members:
                frame, place = self.scans[row].frame, row_of[self.paths[row]]
                T_map_scan[place] = first.T_given_local @ local[row] @ frame.T_local_given
                numbers[place] = number[row]
        reasons = {
            (edge.source, edge.target): reason
            for edge, reason in zip(self.edges, self.graph.rejections, strict=True)
        }
        edges = []
        for (source, target), record in sorted(self.answers.items()):
            unused = reasons.get((source, target), "not registered")
            edges.append(
                MapEdge(
                    row_of[self.paths[source]],
                    row_of[self.paths[target]],
                    record["registered"],
                    record.get("confidence", 0.0),
                    record.get("reason") or record["error"],
                    np.array(record["T_target_source"]) if "T_target_source" in record else None,
                    not unused,
                    unused,
                )
            )
        why = tuple(errors.get(path, "") for path in paths)
        return Map(tuple(paths), why, T_map_scan, numbers, tuple(edges), self.voxel)


def _map_numbers(component: np.ndarray) -> np.ndarray:
    """Of each scan the number of its map, from 1, the largest first; 0 of one alone: (n,) int64."""
    sizes = np.bincount(component)
    ranked = [each for each in np.argsort(-sizes, kind="stable") if sizes[each] > 1]
    rank = np.zeros(len(sizes), dtype=np.int64)
    rank[ranked] = np.arange(1, len(ranked) + 1)
    return rank[component]
