"""Training batches of a data set's pairs, made by worker processes.

A sample depends only on the seed, the epoch and the pair: neither on the number of workers nor on the batch
from which a training was resumed.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import current_thread, main_thread
from typing import Any

import numpy as np
import torch
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from pcreg.datasets.altered import Mixture
from pcreg.datasets.jagged import Jagged
from pcreg.datasets.preparation import Preparation, RawPair, Sample, scaled_clouds
from pcreg.io.pairs import PairDataset, keep_evenly, points_of
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, PyramidConfig
from pcreg.kernels.transfer import to_device
from pcreg.runtime import parallel
from pcreg.runtime.device import ONE_THREAD
from pcreg.runtime.distributed import ALONE, Ranks
from pcreg.runtime.errors import InputError
from pcreg.runtime.termination import end_with_parent

END = object()  # marks the end of the batches
MIN_MATCHES = 32  # a pair with fewer matches is left out of its batch


@dataclass(frozen=True)
class TrainingBatch:
    """Several pairs, sources before targets, and their pyramid, which `to` builds."""

    names: list[str]
    pyramid: Pyramid | PointBatch
    matches: torch.Tensor  # (P, 2) int64, rows of the sources and targets at the first scale
    left_out: list[str]  # pairs with too few matches
    geometry: PyramidConfig
    source_rows: torch.Tensor  # (N, scales) int64, rows of features, one per scale, that describe each point
    target_rows: torch.Tensor  # (M, scales) int64

    def descriptors(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Unit descriptors (N, S C), (M, S C) of sources and targets, from features (R, C) of the pyramid."""
        source, target = self.pyramid.row_groups[0].split(features)
        return concatenate_scales(source, self.source_rows), concatenate_scales(target, self.target_rows)

    def to(self, device: torch.device | str) -> "TrainingBatch":
        """The batch with its pyramid, built on `device`; a batch with one is unchanged."""
        if isinstance(self.pyramid, Pyramid):
            return self
        there = self.moved(device)
        half = len(there.pyramid.lengths) // 2
        return replace(there, pyramid=Pyramid.build(there.pyramid, self.geometry, (half, half)))

    def moved(self, device: torch.device | str) -> "TrainingBatch":
        """The batch on `device`, before its pyramid is built."""
        fields = ("matches", "source_rows", "target_rows")
        rows = {name: to_device(getattr(self, name), device) for name in fields}
        return replace(self, pyramid=self.pyramid.to(device), **rows)


def concatenate_scales(features: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Unit descriptors (N, S C) from unit features (R, C) at a row per scale (N, S)."""
    return features[rows].flatten(1) / rows.shape[1] ** 0.5


def collate(samples: list[Sample], geometry: PyramidConfig, scales: Sequence[float]) -> TrainingBatch | None:
    """Join samples into one batch; returns None if matches or points are too few."""
    kept = [sample for sample in samples if len(sample.matches) >= MIN_MATCHES]
    if not kept:
        return None
    matches = Jagged.of([sample.matches for sample in kept])
    sizes = np.array([(len(sample.source), len(sample.target)) for sample in kept])
    matches = matches.points + matches.of_points(sizes.cumsum(0) - sizes)
    sides = [(each.source, each.source_coarser, each.target, each.target_coarser) for each in kept]
    source, source_coarser, target, target_coarser = zip(*sides, strict=True)
    sources, source_rows = scaled_clouds(source, source_coarser, scales)
    targets, target_rows = scaled_clouds(target, target_coarser, scales)
    clouds = PointBatch.from_clouds([*sources, *targets])
    sides = clouds.points.split([sum(map(len, side)) for side in (sources, targets)])
    if len(sources) == 1 and not all(_suits_batch_norm(side, geometry) for side in sides):
        return None
    left_out = [sample.name for sample in samples if len(sample.matches) < MIN_MATCHES]
    names = [sample.name for sample in kept]
    return TrainingBatch(names, clouds, matches, left_out, geometry, source_rows, target_rows)


def _suits_batch_norm(points: torch.Tensor, geometry: PyramidConfig) -> bool:
    """True if the coarsest level has two points, which batch norms need in training."""
    coarsest = geometry.voxel * 2 ** (geometry.n_levels - 1)
    cells = torch.floor((points + geometry.voxel / 2) / coarsest)
    return bool((cells != cells[0]).any())


class TrainingPairs(Dataset):
    """Prepared pairs of a data set, by (epoch, index)."""

    def __init__(self, pairs: PairDataset, preparation: Preparation, seed: int = 0):
        if len(pairs.pairs) == 0:
            raise InputError("data: the training set has no pairs; check data.root and its options")
        self.pairs, self.preparation, self.seed = pairs, preparation, seed

    def __len__(self) -> int:
        return len(self.pairs.pairs)

    def __getitem__(self, key: tuple[int, int]) -> Sample:
        epoch, index = key
        pair = self.pairs.pairs[index]
        rng = np.random.default_rng([self.seed, epoch, index])
        clouds = (torch.from_numpy(points_of(self.pairs, name)) for name in (pair.source, pair.target))
        return self.preparation([RawPair(pair.name, *clouds, pair.T_target_source)], rng)[0]


class Batches:
    """Batches in another random order each epoch; a last, partial batch is dropped."""

    def __init__(
        self,
        pairs: PairDataset,
        preparation: Preparation,
        geometry: PyramidConfig,
        *,
        batch_size: int = 4,
        limit: int | None = None,
        replay: PairDataset | None = None,
        replay_share: float = 0.3,
        workers: int = 0,
        seed: int = 0,
        ranks: Ranks = ALONE,
    ):
        """Use all `pairs`, or at most `limit` of them, in one process of a training.

        Process r of n takes the batches r, r + n, r + 2 n ... The fraction `replay_share` of the pairs of an
        epoch comes from the data set `replay`, if given.
        """
        keep_evenly(pairs, limit)
        if replay is not None:
            pairs = Mixture(pairs, replay, replay_share)
        self.samples, self.geometry = TrainingPairs(pairs, preparation, seed), geometry
        self.batch_size, self.workers, self.ranks = batch_size, workers, ranks
        total, count = len(self.samples), ranks.count
        if total < count:
            raise InputError(
                f"the training set has {total} pairs for {count} processes; "
                f"give torchrun --nproc-per-node={total} or less"
            )
        if not 0 < batch_size <= total // count:
            shared = f" for {count} processes" if count > 1 else ""
            raise InputError(
                f"batch_size={batch_size}: the training set has {total} pairs{shared}; "
                f"take between 1 and {total // count}"
            )

    def __str__(self) -> str:
        return f"{len(self.samples)} pairs"

    def __len__(self) -> int:
        """Batches per epoch."""
        return len(self.samples) // (self.batch_size * self.ranks.count)

    def epoch(self, epoch: int, first: int = 0) -> Iterator[TrainingBatch | None]:
        """The batches of an epoch from number `first` on."""
        order = np.random.default_rng([self.samples.seed, epoch]).permutation(len(self.samples))
        keys = [(epoch, int(index)) for index in order]
        size, count = self.batch_size, self.ranks.count
        own = range(first * count + self.ranks.rank, len(self) * count, count)
        return load(
            self.samples,
            workers=self.workers,
            batch_sampler=[keys[b * size : (b + 1) * size] for b in own],
            collate_fn=partial(collate, geometry=self.geometry, scales=self.samples.preparation.scales),
        )


def load(dataset: Dataset | IterableDataset, *, workers: int, **settings: Any) -> Iterator[Any]:
    """Batches of a DataLoader with `settings`, made by `workers` processes.

    With workers=0 this process makes them. Each process computes with one thread, so that sums repeat to the
    last bit. If a worker dies, the caller that waits for its batch gets RuntimeError within five seconds.
    """
    loader = DataLoader(dataset, num_workers=workers, worker_init_fn=_begin, **settings)
    if workers == 0:
        return each_within(lambda: ONE_THREAD, loader)
    if current_thread() is not main_thread() or not hasattr(signal, "SIGCHLD"):
        return iter(loader)
    handler = signal.getsignal(signal.SIGCHLD)
    batches = iter(loader)
    # PyTorch's handler would raise an error for a dead worker even while a checkpoint is written.
    signal.signal(signal.SIGCHLD, handler)
    return batches


def each_within(context: Callable[[], AbstractContextManager], batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches; each is made, or waited for, within a new `context()`."""
    batches = iter(batches)
    while True:
        with context():
            batch = next(batches, END)
        if batch is END:
            return
        yield batch


def _begin(_number: int) -> None:
    """Give a worker process one core, and let it end silently when the training ends."""
    parallel.give(parallel.allowed()[:1])
    end_with_parent()
    # A normal exit of Python would wait until all queued batches are read.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


@contextmanager
def unwrap_loader_errors() -> Iterator[None]:
    """Turn a worker's InputError, or its death, into an InputError of one sentence."""
    try:
        yield
    except InputError as error:
        # PyTorch puts the worker's traceback, which ends with the original message, into the message.
        prefix, refused, sentence = str(error).rstrip().rpartition(f"{InputError.__name__}: ")
        if refused and prefix.startswith("Caught"):
            raise InputError(sentence) from error
        raise
    except RuntimeError as error:
        if "DataLoader worker (pid" not in str(error):
            raise
        raise InputError(
            f"a process that makes batches ended ({str(error).strip('. ')}), probably out of memory; "
            "run again with workers=0 (the training continues from its last checkpoint)"
        ) from error


def can_share(device: str) -> bool:
    """True if processes can share tensors on `device`; some systems cannot for GPUs."""
    try:
        reduce_tensor(torch.empty(1, device=device))
    except RuntimeError:
        return False
    return True
