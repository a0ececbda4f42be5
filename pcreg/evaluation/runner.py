"""Run a descriptor and an estimator, or the system, over the pairs of a data set into records.

Worker processes describe each cloud once, kept on disk, and then score the pairs.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from importlib.metadata import packages_distributions, version
from typing import Any

from pcreg.evaluation.estimators import Estimator
from pcreg.evaluation.protocol import Protocol
from pcreg.evaluation.system import System, score_system
from pcreg.evaluation.trial import NEAREST, score
from pcreg.features.base import Descriptor
from pcreg.features.cache import FeatureCache, describe_cloud
from pcreg.io.pairs import Pair, PairDataset
from pcreg.registration.matching.nearest import Matcher
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError
from pcreg.runtime.progress import progress
from pcreg.runtime.records import Records
from pcreg.runtime.workers import Workers, executor_of, map_unordered


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
    matcher: Matcher = NEAREST,
) -> list[dict[str, Any]]:
    """Score all pairs of the data set into `records`; returns one record per pair, in their order.

    Pairs on record are not done again. Records do not depend on the number of `workers` (processes, one per
    core by default, or an executor; with 0, in this process, an estimator that draws its own random numbers
    may not repeat). Raises InputError if there are no pairs, and if descriptor and protocol differ in voxel
    size.
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
        scoring = partial(score, matcher=matcher), (files, protocol, estimator, tuple(seeds))
        return _record(records, dataset, executor, scoring, f"{protocol.name}, {estimator.name}")


def run_system(
    dataset: PairDataset,
    system: System,
    records: Records,
    *,
    seeds: Sequence[int] = (0,),
    workers: Workers = None,
) -> list[dict[str, Any]]:
    """Have the system register all pairs of the data set, recorded and returned as by `run`."""
    with executor_of(workers) as executor:
        registering = executor if system.device == "cpu" else None  # a GPU is not shared by processes
        scoring = score_system, (dataset, system, tuple(seeds))
        return _record(records, dataset, registering, scoring, system.name)


def _todo(dataset: PairDataset, records: Records) -> list[Pair]:
    if not dataset.pairs:
        raise InputError("the data set holds no pairs; check data.* and limit")
    return [pair for pair in dataset.pairs if pair.name not in records.by_pair]


def _record(
    records: Records,
    dataset: PairDataset,
    executor: Executor | None,
    scoring: tuple[Callable[..., Any], tuple[Any, ...]],
    title: str,
) -> list[dict[str, Any]]:
    """Score the pairs that are not on record; returns the records of all, in the order of the data set."""
    todo = _todo(dataset, records)
    for _, record in progress(map_unordered(executor, *scoring, todo), title, len(todo)):
        records.add(record)
    records.order([pair.name for pair in dataset.pairs])
    return [records.by_pair[pair.name] for pair in dataset.pairs]


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """Versions of the packages on which every figure depends, and of these packages."""
    installed = packages_distributions()["open3d"][0]  # builds of Open3D differ in their name
    names = sorted({"torch", "numpy", "scipy", "open3d", *packages})
    return {"pcreg": VERSION} | {name: version(installed if name == "open3d" else name) for name in names}
