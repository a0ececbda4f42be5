"""Run a descriptor and an estimator over the pairs of a data set, and record every figure of every pair.

Features first, once per cloud and kept on disk, then the pairs, both in worker processes.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeft

from pcreg.descriptors import Descriptor
from pcreg.errors import InputError
from pcreg.estimators import Estimator
from pcreg.features import FeatureCache, describe_cloud
from pcreg.pair import PairDataset
from pcreg.protocol import Protocol
from pcreg.records import Records
from pcreg.trials import score
from pcreg.workers import in_workers

Item = TypeVar("Item")


def run(
    dataset: PairDataset,
    descriptor: Descriptor,
    estimator: Estimator,
    protocol: Protocol,
    records: Records,
    features: FeatureCache,
    *,
    seeds: Sequence[int] = (0,),
    workers: int | None = None,
) -> list[dict[str, Any]]:
    """Score all pairs of the data set into `records`; returns one record per pair, in their order.

    Pairs recorded before are not done again. The records do not depend on the number of `workers`
    (one per core by default; 0 works here and, with an estimator that draws its own random numbers,
    may not repeat). Raises InputError if there are no pairs, and if descriptor and protocol differ in
    voxel size.
    """
    if not dataset.pairs:
        raise InputError("the data set holds no pairs; check data.* and limit")
    if descriptor.voxel != protocol.voxel:
        raise InputError(
            f"the descriptor works at voxel {descriptor.voxel:g} m and the protocol asks for "
            f"{protocol.voxel:g} m; set protocol.voxel={descriptor.voxel:g}"
        )
    todo = [pair for pair in dataset.pairs if pair.name not in records.by_pair]
    names = dict.fromkeys(name for pair in todo for name in (pair.source, pair.target))
    describers = workers if descriptor.device == "cpu" else 0  # a GPU is not shared among processes
    described = in_workers(describe_cloud, (dataset, features), names, describers)
    files = dict(progress(described, f"{descriptor.name} features", len(names)))
    scored = in_workers(score, (files, protocol, estimator, tuple(seeds)), todo, workers)
    for _, record in progress(scored, f"{protocol.name}, {estimator.name}", len(todo)):
        records.add(record)
    records.order([pair.name for pair in dataset.pairs])
    return [records.by_pair[pair.name] for pair in dataset.pairs]


def progress(items: Iterable[Item], words: str, total: int) -> Iterator[Item]:
    """The items, with a bar on stderr that shows how many are done and the time left."""
    if total == 0:
        return
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        yield from bar.track(items, total=total)


def versions(estimator: Estimator) -> dict[str, str]:
    """Versions of the packages that figures depend on."""
    packages = {"pcreg", "torch", "numpy", "scipy", _open3d(), *estimator.packages} - {"open3d"}
    return {package.removesuffix("-cpu"): version(package) for package in sorted(packages)}


def _open3d() -> str:
    """The name under which Open3D is installed; its builds differ in it."""
    from importlib.metadata import packages_distributions

    return packages_distributions()["open3d"][0]
