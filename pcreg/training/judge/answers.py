"""Questions about pairs with a given truth, and evidence for the motions found."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pcreg.geometry.se3 import inverse, rotation_error, transform, translation_error
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import Cloud
from pcreg.io.pairs import PairDataset, evenly
from pcreg.registration.clouds.local_frame import MIRROR, LocalFrame, between_given
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import DescribedCloud
from pcreg.registration.judge.evidence import Evidence
from pcreg.registration.judge.observability import DegenerateDirection, Observability
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.errors import InputError
from pcreg.runtime.workers import executor_of, map_unordered

MERGED = 0.3  # of the questions whose viewpoints are not given
SCENES_PER_HOUSE = 4
MAX_MERGED = 2  # clouds that are merged into the source of a question


@dataclass(frozen=True)
class Question:
    """Two clouds and the motion between them; None for strangers and mirror images."""

    source: str
    target: str
    T_target_source: np.ndarray | None
    kind: str  # true, apart, alike, unrelated or mirrored
    viewpoint: str  # sensor, or auto: not given
    merged: bool  # others of its scene are added to the source, as in a map


@dataclass(frozen=True)
class Gate:
    """Largest errors of a right motion."""

    degrees: float
    metres: float

    def accepts(self, T: np.ndarray, truth: np.ndarray) -> bool:
        return rotation_error(T, truth) < self.degrees and translation_error(T, truth) < self.metres


def questions(
    dataset: PairDataset, numbers: dict[str, int], seed: int, hidden: float = 0.0
) -> list[Question]:
    """At most so many questions of each kind about the clouds of a data set, in a fixed order.

    true       pairs that overlap
    apart      pairs of one simulated scene that share nothing
    alike      clouds of simulated scenes with the same furniture, or of streets of one kind
    unrelated  clouds of different scenes; where there is but one scene, there are none
    mirrored   a cloud against the mirror image of itself and of the other one of its pair, in turns

    The fraction `hidden` of all but the last comes without viewpoints; three in ten of these have a merged
    source.
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
    return [_question(*each, rng, hidden) for each in asked]


def house_of(index: int) -> int:
    """The number of the house, or of the kind of street, of a simulated scene."""
    return index // SCENES_PER_HOUSE


def _others(name: str, scene_of: dict[str, str], alike: bool) -> list[str]:
    """The clouds of other scenes; of those of the same house alone if `alike`."""

    def house(cloud: str) -> int | None:
        number = scene_of[cloud].removeprefix("scene-")
        return house_of(int(number)) if number.isdigit() else None

    others = [other for other in scene_of if scene_of[other] != scene_of[name]]
    return [other for other in others if None is not house(other) == house(name)] if alike else others


def _question(
    source: str, target: str, T: np.ndarray | None, kind: str, rng: np.random.Generator, share: float
) -> Question:
    hidden, merged = rng.random(2) < [share, MERGED]
    hidden = hidden and kind != "mirrored"  # without a viewpoint a scan and its mirror image look alike
    return Question(source, target, T, kind, "auto" if hidden else "sensor", bool(hidden and merged))


def answers(
    dataset: PairDataset,
    scale: SingleScaleRegistrar,
    gate: Gate,
    asked: list[Question],
    workers: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield evidence, as plain values, and rightness of the motions for each question."""
    learned = bool(scale.descriptor.fingerprint)
    with executor_of(workers) as executor:
        for question, found in map_unordered(executor, _answer, (dataset, scale, gate), asked):
            if found:
                yield {"data": dataset.name, "kind": question.kind, "learned": learned, "motions": found}


def evidence_of(motion: dict[str, Any]) -> Evidence:
    """Restore evidence from plain values."""
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
    of = dataset, scale
    without = question.target if question.merged else None
    try:
        source, source_frame = _described(
            *of, question.source, question.viewpoint, question.kind == "mirrored", without
        )
        target, target_frame = _described(*of, question.target, question.viewpoint)
    except InputError:  # too few points
        return []
    found = []
    for candidate in scale.candidates(source, target):
        T = between_given(candidate.refined.T_target_source, source_frame, target_frame)
        right = question.T_target_source is not None and gate.accepts(T, question.T_target_source)
        found.append({"evidence": asdict(candidate.evidence), "right": right})
    return found


@lru_cache(maxsize=60)
def _described(
    dataset: PairDataset,
    scale: SingleScaleRegistrar,
    name: str,
    viewpoint: str,
    mirrored: bool = False,
    without: str | None = None,
) -> tuple[DescribedCloud, LocalFrame]:
    """Describe a cloud, mirrored or merged with those beside it but for `without`."""
    points = dataset.cloud(name)
    if mirrored:
        points = points * MIRROR
    elif without is not None:
        points = merged(dataset, name, without, scale.descriptor.voxel / 2)
    cloud = PreparedCloud(Cloud(points), viewpoint, name)
    return cloud.at(scale.descriptor), cloud.frame


def merged(dataset: PairDataset, name: str, without: str, voxel: float) -> np.ndarray:
    """Points (N, 3), one per `voxel` metres, of a cloud and up to two beside it."""
    beside = [(pair.target, inverse(pair.T_target_source)) for pair in dataset.pairs if pair.source == name]
    beside += [(pair.source, pair.T_target_source) for pair in dataset.pairs if pair.target == name]
    others = [each for each in beside if each[0] != without][:MAX_MERGED]
    clouds = [dataset.cloud(name), *(transform(T, dataset.cloud(other)) for other, T in others)]
    points = np.concatenate(clouds)
    return points[voxel_downsample(points, voxel)]
