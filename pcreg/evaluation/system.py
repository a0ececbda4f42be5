"""The whole system in a benchmark: the answers and verdicts of `pcreg.register`, scored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter, process_time
from typing import Any, ClassVar

import numpy as np

from pcreg.evaluation.protocol import Scoring
from pcreg.evaluation.trial import fields_of, motion_errors
from pcreg.geometry.overlap import OVERLAP_DISTANCE, measured_overlap
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.pairs import Pair, PairDataset, points_of
from pcreg.registration.clouds.inputs import VIEWPOINTS
from pcreg.registration.registrar import Registrar
from pcreg.registration.result import Registration
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime import cached_property
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError, OutputError

# RTE in metres and RRE in degrees; an answer is right by the first gate
INDOOR_GATES = ((0.3, 15.0),)
OUTDOOR_GATES = ((2.0, 5.0), (0.5, 1.0), (0.2, 1.0))
# Fields of every answer, with the values of a pair whose clouds cannot be used
REFUSED = {"registered": False, "confidence": 0.0, "voxel": None, "reason": "", "inliers": 0, "notes": []}


@dataclass(frozen=True)
class System(Scoring):
    """Settings of `register`, and the scoring of its answers; raises InputError for invalid ones."""

    samples: ClassVar[tuple[None]] = (None,)  # every point counts

    descriptor: str = "fcgf"
    weights: str | None = None  # a .safetensors file; None: the shipped ones
    voxel: float | None = None  # metres; None: chosen from the clouds
    viewpoint: str | None = None  # of both clouds; None: as the data set states
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("descriptor", DESCRIPTORS)
        if self.voxel is not None:
            self._positive("voxel")
        if self.viewpoint is not None:
            self._one_of("viewpoint", VIEWPOINTS)
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
    """The record of a pair; a pair of unusable clouds is refused, without a motion."""
    source, target = (points_of(dataset, name) for name in (pair.source, pair.target))
    clock = process_time if system.device == "cpu" else perf_counter
    overlap, trials = None, []
    for seed in seeds:
        start = clock()
        try:
            found = system.register(source, target, seed)
        except OutputError:  # no fault of the clouds
            raise
        except InputError as error:
            found, trial = None, REFUSED | {"reason": str(error)} | motion_errors(pair, None, source)
        seconds = {"register": clock() - start}
        if found:
            a, b = (cloud[voxel_downsample(cloud, found.voxel)] for cloud in (source, target))
            if overlap is None:
                overlap = measured_overlap(a, b, pair.T_target_source, OVERLAP_DISTANCE * found.voxel)
            answer = {name: getattr(found, name) for name in REFUSED} | {"notes": list(found.notes)}
            trial = answer | motion_errors(pair, found.T_target_source, a)
        trials.append({"samples": None, "seed": seed} | trial | {"seconds": seconds})
    points = [len(source), len(target)]
    return fields_of(pair) | {"overlap_measured": overlap, "points": points, "trials": trials}
