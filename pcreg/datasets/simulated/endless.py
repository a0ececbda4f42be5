"""Training batches of scenes that are generated during the training, on a GPU if there is one."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from pydantic import PositiveInt
from torch.utils.data import IterableDataset, get_worker_info

from pcreg.datasets.collate import TrainingBatch, can_share, collate, load
from pcreg.datasets.preparation import Preparation, RawPair
from pcreg.datasets.simulated.recorded import Recorder, ScenePairs
from pcreg.kernels.pyramid import PyramidConfig
from pcreg.runtime.distributed import ALONE, Ranks

# Batches that each worker prepares ahead, as recording a scene takes as long as several training steps
BATCHES_AHEAD = 10
TURNS = 2  # even batches draw from even scenes, odd ones from odd: two workers record each scene once


@dataclass
class Endless:
    """Training batches from a pool of simulated scenes; new ones replace the oldest.

    The content of a batch depends only on the seed and its number, so that a training can be resumed. One or
    two worker processes make batches on the device of the training; with workers=0 the training makes them.
    Several processes of one training (`ranks`) see different scenes.
    """

    record: Recorder
    preparation: Preparation
    geometry: PyramidConfig
    batch_size: PositiveInt = 4  # pairs
    per_epoch: PositiveInt = 100  # batches
    pool: PositiveInt = 64  # scenes at a time
    renew_every: PositiveInt = 10  # batches
    minimum_overlap: float = 0.1
    max_relative_rotation: float = 180.0  # degrees between the clouds of a pair at first
    rotation_warmup: int = 0  # epochs in which this angle grows to that of the augmentation
    workers: int = 0  # 0: none; at most two are used
    seed: int = 0
    ranks: Ranks = ALONE

    def __post_init__(self) -> None:
        self._scenes: dict[int, ScenePairs] = {}
        self._stream: Iterator[TrainingBatch | None] = iter(())
        self._next = -1  # number of the stream's next batch, counted over all epochs

    def __getstate__(self) -> dict:
        """State without the scenes and the batches of this process."""
        return self.__dict__ | {"_scenes": {}, "_stream": iter(())}

    def __len__(self) -> int:
        """Batches per epoch."""
        return self.per_epoch

    def __str__(self) -> str:
        return "simulated scenes"

    def epoch(self, epoch: int, first: int = 0) -> Iterator[TrainingBatch | None]:
        """The batches of an epoch from number `first` on."""
        if self._next != epoch * self.per_epoch + first:
            self._next = epoch * self.per_epoch + first
            self._stream = load(
                _Stream(self, self._next),
                workers=min(self.workers, TURNS),
                batch_size=None,
                prefetch_factor=BATCHES_AHEAD if self.workers else None,
                multiprocessing_context="spawn" if self.workers else None,  # a fork cannot use the GPU
            )
        for _ in range(first, self.per_epoch):
            self._next += 1
            yield next(self._stream)

    def make(self, number: int) -> TrainingBatch | None:
        """The batch `number`, counted over all epochs; None without a usable pair."""
        rng = np.random.default_rng([self.seed, number, self.ranks.rank])
        scenes = self._renewed(number)
        drawn = (scenes[n] for n in rng.integers(0, len(scenes), self.batch_size).tolist())
        pairs = [pair for scene in drawn if (pair := self._pair(scene, rng))]
        prepare = self._preparation(number / self.per_epoch)
        return collate(prepare(pairs, rng), self.geometry, prepare.scales) if pairs else None

    def _preparation(self, epochs: float) -> Preparation:
        """Preparation after `epochs`; at first a network learns only from small rotations."""
        augment, start = self.preparation.augment, self.max_relative_rotation
        if epochs >= self.rotation_warmup:
            return self.preparation
        degrees = start + (augment.max_relative_rotation - start) * epochs / self.rotation_warmup
        return replace(self.preparation, augment=replace(augment, max_relative_rotation=degrees))

    def _renewed(self, number: int) -> range:
        """Record the scenes from which batch `number` draws, and drop old ones."""
        oldest, turns = number // self.renew_every, min(TURNS, self.pool)
        for index in [index for index in self._scenes if index < oldest]:
            del self._scenes[index]
        scenes = range(oldest + (number - oldest) % turns, oldest + self.pool, turns)
        for index in scenes:
            if index not in self._scenes:
                scene = index * self.ranks.count + self.ranks.rank
                recording = self.record(self.seed, scene, self.ranks.device)
                voxel = self.preparation.voxel
                self._scenes[index] = ScenePairs.of(recording, voxel, self.minimum_overlap)
        return scenes

    def _pair(self, index: int, rng: np.random.Generator) -> RawPair | None:
        """A random pair of the scene; None if no two of its clouds overlap."""
        scene = self._scenes[index]
        if len(scene.pairs) == 0:
            return None
        source, target = scene.draw(rng)
        name = f"scene {index}, {source}->{target}"
        clouds, motion = scene.recording.clouds, scene.recording.motion(source, target)
        return RawPair(name, clouds[source], clouds[target], motion)


class _Stream(IterableDataset):
    """Batches from number `first` on; a worker leaves them on a GPU that it can share."""

    def __init__(self, batches: Endless, first: int):
        self.batches, self.first = batches, first

    def __iter__(self) -> Iterator[TrainingBatch | None]:
        worker = get_worker_info()
        if worker is None:
            yield from map(self.batches.make, itertools.count(self.first))
            return
        device = self.batches.ranks.device
        if (index := torch.device(device).index) is not None:
            torch.cuda.set_device(index)  # allocate nothing on the GPU of another process
        stays = can_share(device)
        for number in itertools.count(self.first + worker.id, worker.num_workers):
            batch = self.batches.make(number)
            yield batch if batch is None or stays else batch.moved("cpu")
