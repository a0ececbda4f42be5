"""Motions found for pairs whose answer is known, and the evidence for each, to fit a confidence model to."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pcreg.geometry.se3 import inverse, rotation_error, transform, translation_error
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import Cloud
from pcreg.io.pairs import PairDataset, evenly
from pcreg.registration.clouds.given_frame import between_given
from pcreg.registration.clouds.local_frame import MIRROR, LocalFrame
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.judge.evidence import Evidence
from pcreg.registration.judge.observability import DegenerateDirection, Observability
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.errors import InputError
from pcreg.runtime.workers import executor_of, map_unordered

MERGED = 0.3  # fraction of the questions whose viewpoints are not told
SCENES_PER_HOUSE = 4
MAX_MERGED = 2  # clouds that are merged into the source of a question


@dataclass(frozen=True)
class Question:
    """Two clouds, and the motion between them or None: they show different scenes, or one is mirrored."""

    source: str
    target: str
    T_target_source: np.ndarray | None
    kind: str  # true, apart, alike, unrelated or mirrored
    viewpoint: str  # sensor, or auto: not told
    merged: bool  # others of its scene are added to the source, as in a map


@dataclass(frozen=True)
class Gate:
    """How far from the truth a right motion may be."""

    degrees: float
    metres: float

    def accepts(self, T: np.ndarray, truth: np.ndarray) -> bool:
        return rotation_error(T, truth) < self.degrees and translation_error(T, truth) < self.metres


def questions(
    dataset: PairDataset, numbers: dict[str, int], seed: int, untold: float = 0.0
) -> list[Question]:
    """So many questions of each kind about the clouds of a data set, in a fixed order, at most.

    true       pairs that overlap
    apart      pairs of one simulated scene that share nothing
    alike      clouds of simulated scenes with the same furniture, or of streets of one kind
    unrelated  clouds of different scenes; where there is but one scene, there are none
    mirrored   a cloud against the mirror image of itself and of the other one of its pair, in turns

    Of all but the last the fraction `untold` comes without viewpoints, and three in ten of these have a
    merged source.
    """
    rng = np.random.default_rng(seed)
    overlapping = evenly([pair for pair in dataset.pairs if not pair.consecutive], numbers["true"])
    apart = evenly(getattr(dataset, "apart", []), numbers["apart"])
    asked = [
        (pair.source, pair.target, pair.T_target_source, kind)
        for kind, pairs in (("true", overlapping), ("apart", apart))
        for pair in pairs
    ]
    scene_of = {name: pair.scene for pair in dataset.pairs for name in (pair.source, pair.target)}
    names = sorted(scene_of)
    for kind in ("alike", "unrelated"):
        others = {name: _others(name, scene_of, kind == "alike") for name in names}
        able = [name for name in names if others[name]]
        for _ in range(numbers[kind] if able else 0):
            source = str(rng.choice(able))
            asked.append((source, str(rng.choice(others[source])), None, kind))
    for turn, pair in enumerate(evenly(dataset.pairs, numbers["mirrored"])):
        asked.append((pair.source, pair.source if turn % 2 else pair.target, None, "mirrored"))
    return [_question(*each, rng, untold) for each in asked]


def house_of(index: int) -> int:
    """The house, or the kind of street, that a simulated scene is of."""
    return index // SCENES_PER_HOUSE


def _others(name: str, scene_of: dict[str, str], alike: bool) -> list[str]:
    """The clouds of other scenes; of those of the same house alone if `alike`."""

    def house(cloud: str) -> int | None:
        number = scene_of[cloud].removeprefix("scene-")
        return house_of(int(number)) if number.isdigit() else None

    others = [other for other in scene_of if scene_of[other] != scene_of[name]]
    return [other for other in others if None is not house(other) == house(name)] if alike else others


def _question(
    source: str, target: str, T: np.ndarray | None, kind: str, rng: np.random.Generator, untold: float
) -> Question:
    hidden, merged = rng.random(2) < [untold, MERGED]
    hidden = hidden and kind != "mirrored"  # without a viewpoint a scan and its mirror image look alike
    return Question(source, target, T, kind, "auto" if hidden else "sensor", bool(hidden and merged))


def answers(
    dataset: PairDataset,
    scale: SingleScaleRegistrar,
    gate: Gate,
    asked: list[Question],
    workers: int | None = None,
) -> Iterator[dict[str, Any]]:
    """For each question, in any order, the motions found as plain values: their evidence, and if right."""
    learned = bool(scale.descriptor.fingerprint)
    with executor_of(workers) as executor:
        for question, found in map_unordered(executor, _answer, (dataset, scale, gate), asked):
            if found:
                yield {"data": dataset.name, "kind": question.kind, "learned": learned, "motions": found}


def evidence_of(motion: dict[str, Any]) -> Evidence:
    """The evidence that was written as plain values."""
    fields = motion["evidence"]
    free = tuple(
        DegenerateDirection(each["kind"], tuple(each["axis"])) for each in fields["observability"]["free"]
    )
    return Evidence(
        **fields | {"observability": Observability(fields["observability"]["min_observability"], free)}
    )


def _answer(
    dataset: PairDataset, scale: SingleScaleRegistrar, gate: Gate, question: Question
) -> list[dict[str, Any]]:
    try:
        source, source_frame = _source(dataset, scale, question)
        target, target_frame = _described(dataset, scale, question.target, question.viewpoint)
    except InputError:  # too few points
        return []
    found = []
    for candidate in scale.candidates(source, target):
        T = between_given(candidate.refined.T_target_source, source_frame, target_frame)
        right = question.T_target_source is not None and gate.accepts(T, question.T_target_source)
        found.append({"evidence": asdict(candidate.evidence), "right": right})
    return found


def _source(
    dataset: PairDataset, scale: SingleScaleRegistrar, question: Question
) -> tuple[DescribedCloud, LocalFrame]:
    if question.kind == "mirrored":
        return _at(scale, dataset.cloud(question.source) * MIRROR, question.source, question.viewpoint)
    if question.merged:
        points = merged(dataset, question.source, question.target, scale.descriptor.voxel / 2)
        return _at(scale, points, question.source, question.viewpoint)
    return _described(dataset, scale, question.source, question.viewpoint)


@lru_cache(maxsize=60)
def _described(
    dataset: PairDataset, scale: SingleScaleRegistrar, name: str, viewpoint: str
) -> tuple[DescribedCloud, LocalFrame]:
    return _at(scale, dataset.cloud(name), name, viewpoint)


def _at(
    scale: SingleScaleRegistrar, points: np.ndarray, name: str, viewpoint: str
) -> tuple[DescribedCloud, LocalFrame]:
    """The cloud described, and the frame in which that is."""
    cloud = PreparedCloud(Cloud(points), viewpoint, name)
    return cloud.at(scale), cloud.frame


def merged(dataset: PairDataset, name: str, without: str, voxel: float) -> np.ndarray:
    """The cloud and up to two that the pairs place beside it, as one, a point per `voxel` metres: (N, 3)."""
    beside = [(pair.target, inverse(pair.T_target_source)) for pair in dataset.pairs if pair.source == name]
    beside += [(pair.source, pair.T_target_source) for pair in dataset.pairs if pair.target == name]
    others = [(other, T) for other, T in beside if other != without][:MAX_MERGED]
    clouds = [dataset.cloud(name), *(transform(T, dataset.cloud(other)) for other, T in others)]
    points = np.concatenate(clouds)
    return points[voxel_downsample(points, voxel)]
