"""Pairs of simulated scenes as a data set: to validate on, with no download."""

from functools import cached_property

import numpy as np

from pcreg.datasets.simulated.recording import Recorder, Recording, ScenePairs
from pcreg.features.pretrained import MIN_OUTDOOR_VOXEL
from pcreg.io.pairs import Pair
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError


class Recorded:
    """Record up to `per_scene` pairs of each of `count` scenes; scene n depends on (seed, n) alone.

    `voxel` in metres is the spacing at which the descriptors see the clouds; overlap is estimated with
    cells four times as large. `apart` has as many pairs of a scene without overlap. Raises InputError for
    counts below one.
    """

    name = "simulated scenes"
    left_out = ()
    viewpoint = "sensor"

    def __init__(
        self,
        record: Recorder,
        voxel: float,
        seed: int = 0,
        count: int = 4,
        per_scene: int = 5,
        minimum_overlap: float = 0.1,
        device: str = "auto",
    ) -> None:
        if count < 1 or per_scene < 1:
            raise InputError(f"count is {count}, per_scene {per_scene}; ask for at least one of each")
        self.record, self.voxel, self.seed = record, voxel, seed
        self.count, self.per_scene, self.minimum_overlap = count, per_scene, minimum_overlap
        self.device = choose_device(device)
        self._clouds: dict[str, np.ndarray] = {}

    @property
    def outdoor(self) -> bool:
        return self.voxel >= MIN_OUTDOOR_VOXEL

    @cached_property
    def pairs(self) -> list[Pair]:
        return self._drawn[0]

    @property
    def apart(self) -> list[Pair]:
        """Up to `per_scene` pairs of each scene whose clouds share no cell: other corners, other streets."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[list[Pair], list[Pair]]:
        pairs: list[Pair] = []
        apart: list[Pair] = []
        for index in range(self.count):
            recording = self.record(self.seed, index, self.device)
            scene = ScenePairs.of(recording, self.voxel, self.minimum_overlap)
            rng = np.random.default_rng([self.seed, index])
            draws = 10 * self.per_scene if len(scene.pairs) else 0
            drawn = sorted({scene.draw(rng) for _ in range(draws)})
            for source, target in rng.permutation(drawn)[: self.per_scene].tolist():
                shared = scene.overlap[(scene.pairs == (source, target)).all(1)][0]
                pairs.append(self._pair(recording, index, source, target, float(shared)))
            drawn = rng.permutation(scene.apart)[: self.per_scene].tolist()
            apart += [self._pair(recording, index, source, target, 0.0) for source, target in drawn]
        return pairs, apart

    def _pair(self, recording: Recording, index: int, source: int, target: int, overlap: float) -> Pair:
        names = [f"scene-{index}/{n}" for n in (source, target)]
        for name, n in zip(names, (source, target), strict=True):
            self._clouds[name] = recording.clouds[n].double().cpu().numpy()
        return Pair(*names, recording.motion(source, target), scene=f"scene-{index}", overlap=overlap)

    def cloud(self, name: str) -> np.ndarray:
        if self._drawn and name not in self._clouds:
            raise InputError(f"{name}: no such cloud; names are those of the pairs")
        return self._clouds[name]
