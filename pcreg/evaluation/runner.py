"""Measure a descriptor and an estimator, or the system, on the pairs of a data set.

Worker processes describe each cloud once, keep the descriptions on disk, and then score the pairs into
records. The system is `pcreg.register`, whose transforms and verdicts are scored.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import packages_distributions, version
from time import perf_counter, process_time
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import PositiveFloat

from pcreg.evaluation.estimators import Estimator
from pcreg.evaluation.protocol import Protocol, Scoring
from pcreg.evaluation.trial import fields_of, motion_errors, score
from pcreg.features.base import Descriptor
from pcreg.features.cache import FeatureCache, describe_cloud
from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.pairs import Pair, PairDataset, points_of
from pcreg.registration.clouds.inputs import VIEWPOINTS
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime import VERSION, cached_property
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError, attempted
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import Workers, executor_of, map_unordered

# RTE in metres and RRE in degrees; an answer is right by the first gate
INDOOR_GATES = ((0.3, 15.0),)
OUTDOOR_GATES = ((2.0, 5.0), (0.5, 1.0), (0.2, 1.0))
# Fields of every answer, with the values of a pair whose clouds cannot be used
REFUSED = {"registered": False, "confidence": 0.0, "voxel": None, "reason": "", "inliers": 0, "notes": []}


@dataclass(frozen=True)
class System(Scoring):
    """Settings of `register`, and the scoring of its answers; InputError for settings that conflict."""

    samples: ClassVar[tuple[None]] = (None,)  # all points, as in Protocol

    descriptor: Literal[DESCRIPTORS] = "fcgf"
    weights: str | None = None  # a .safetensors file; None: the shipped ones
    voxel: PositiveFloat | None = None  # metres; None: chosen from the clouds
    viewpoint: Literal[VIEWPOINTS] | None = None  # of both clouds; None: as the data set states
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights and self.descriptor == "fpfh":
            raise InputError(f"protocol.weights={self.weights}: {self.descriptor} takes none; leave it out")
        choose_device(self.device)

    def on(self, dataset: PairDataset) -> "System":
        """Fill in the viewpoint and the gates of a data set where none are given."""
        gates = self.gates or (OUTDOOR_GATES if dataset.outdoor else INDOOR_GATES)
        return replace(self, gates=gates, viewpoint=self.viewpoint or dataset.viewpoint)

    @cached_property
    def registrar(self) -> Registrar:
        """The registrar, with weights that are loaded once."""
        return Registrar(
            descriptor=self.descriptor, weights=self.weights, voxel=self.voxel, device=self.device
        )

    def register(self, source: np.ndarray, target: np.ndarray, seed: int) -> Registration:
        """The answer of `pcreg.register`; InputError for clouds that it cannot use."""
        prepared = (
            self.registrar.prepare(points, name=name, viewpoint=self.viewpoint)
            for name, points in (("source", source), ("target", target))
        )
        return self.registrar.register(*prepared, seed=seed)


def score_system(dataset: PairDataset, system: System, seeds: Sequence[int], pair: Pair) -> dict[str, Any]:
    """Record of a pair; a pair with an unusable cloud counts as rejected, without a motion."""
    source, target = (points_of(dataset, name) for name in (pair.source, pair.target))
    clock = process_time if system.device == "cpu" else perf_counter
    overlap, trials = None, []
    for seed in seeds:
        start = clock()
        found, reason = attempted(partial(system.register, source, target, seed))
        seconds = {"register": clock() - start}
        trial = REFUSED | {"reason": reason} | motion_errors(pair, None, source)
        if found:
            a, b = (cloud[voxel_downsample(cloud, found.voxel)] for cloud in (source, target))
            if overlap is None:
                overlap = measured_overlap(a, b, pair.T_target_source, OVERLAP_DISTANCE * found.voxel)
            answer = {name: getattr(found, name) for name in REFUSED} | {"notes": list(found.notes)}
            trial = answer | motion_errors(pair, found.T_target_source, a)
        trials.append({"samples": None, "seed": seed} | trial | {"seconds": seconds})
    points = [len(source), len(target)]
    return fields_of(pair) | {"overlap_measured": overlap, "points": points, "trials": trials}


def run(
    dataset: PairDataset,
    descriptor: Descriptor,
    estimator: Estimator,
    protocol: Protocol,
    records: Records,
    features: FeatureCache,
    *,
    seeds: Sequence[int] = (0,),
    workers: Workers = None,
) -> list[dict[str, Any]]:
    """Score all pairs of the data set into `records`; returns one record per pair, in their order.

    Pairs with a record are not scored again. Records do not depend on the number of `workers`, except that
    with 0 an estimator with random numbers of its own may not repeat. Raises InputError if there are no
    pairs, and if descriptor and protocol differ in voxel size.
    """
    if descriptor.voxel != protocol.voxel:
        raise InputError(
            f"the descriptor works at voxel {descriptor.voxel:g} m and the protocol at "
            f"{protocol.voxel:g} m; set protocol.voxel={descriptor.voxel:g}"
        )
    todo = _todo(dataset, records)
    names = dict.fromkeys(name for pair in todo for name in (pair.source, pair.target))
    with executor_of(workers) as executor:
        describing = executor if descriptor.device == "cpu" else None  # a GPU is not shared by processes
        described = map_unordered(describing, describe_cloud, (dataset, features), names)
        files = dict(progress(described, f"{descriptor.name} features", len(names)))
        scoring = score, (files, protocol, estimator, tuple(seeds))
        return _record(records, dataset, executor, scoring, f"{protocol.name}, {estimator.name}")


def run_system(
    dataset: PairDataset, system: System, records: Records, *, seeds: Sequence[int], workers: Workers
) -> list[dict[str, Any]]:
    """Register all pairs of the data set by the system; records and returns the results as `run` does."""
    with executor_of(workers) as executor:
        registering = executor if system.device == "cpu" else None  # a GPU is not shared by processes
        scoring = score_system, (dataset, system, tuple(seeds))
        return _record(records, dataset, registering, scoring, system.name)


def _todo(dataset: PairDataset, records: Records) -> list[Pair]:
    if not dataset.pairs:
        raise InputError("the data set holds no pairs; check data.* and limit")
    done = records.by_pair
    for pair in dataset.pairs:
        if pair.name in done and not np.allclose(done[pair.name]["truth"], pair.T_target_source):
            raise InputError(
                f"{records.path}: {pair.name} was measured against other poses; delete the file, or give "
                "another out="
            )
    return [pair for pair in dataset.pairs if pair.name not in done]


def _record(
    records: Records,
    dataset: PairDataset,
    executor: Executor | None,
    scoring: tuple[Callable[..., Any], tuple[Any, ...]],
    title: str,
) -> list[dict[str, Any]]:
    """Score the pairs without a record; returns the records of all pairs, in the order of the data set."""
    todo = _todo(dataset, records)
    for _, record in progress(map_unordered(executor, *scoring, todo), title, len(todo)):
        records.add(record)
    records.order([pair.name for pair in dataset.pairs])
    return [records.by_pair[pair.name] for pair in dataset.pairs]


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """Versions of what figures depend on: pcreg, NumPy, SciPy, torch, any Open3D, and `packages`."""
    open3d = packages_distributions().get("open3d")  # builds of Open3D differ in their name
    names = sorted({"torch", "numpy", "scipy", *packages} - {"open3d", "pcreg"})
    found = {"open3d": version(open3d[0])} if open3d else {}
    return {"pcreg": VERSION} | found | {name: version(name) for name in names}
