"""Questions about pairs with ground truth, and evidence for the motions found."""

from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcreg.evaluation.metrics import within
from pcreg.evaluation.runner import INDOOR_GATES, OUTDOOR_GATES
from pcreg.geometry.se3 import inverse, rotation_error, transform, translation, translation_error
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import Cloud
from pcreg.io.pairs import PairDataset, evenly
from pcreg.registration.clouds.local_frame import LocalFrame, between_given, between_local
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.clouds.preprocess import MIRROR, DescribedCloud
from pcreg.registration.estimation.ransac import MAX_RANKED
from pcreg.registration.judge.confidence import TERMS, proves_little, values_of
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.errors import InputError
from pcreg.runtime.workers import executor_of, map_unordered

MERGED = 0.3  # share of the questions without viewpoints that have a merged source
SCENES_PER_HOUSE = 4
INDOOR_SLIDE, OUTDOOR_SLIDE = (0.3, 1.0), (2.0, 6.0)  # metres
MAX_MERGED = 2  # clouds that are merged into the source of a question


@dataclass(frozen=True)
class Question:
    """Two clouds and their true motion; None if unrelated, alike or mirrored."""

    source: str
    target: str
    T_target_source: np.ndarray | None
    kind: str  # true, apart, alike, unrelated, mirrored or slid
    viewpoint: str  # sensor, or auto: not given
    merged: bool  # other clouds of its scene are added to the source, as in a map
    start: np.ndarray | None = None  # a motion that is judged instead of searching for one


def is_right(T: np.ndarray, truth: np.ndarray | None, outdoor: bool) -> bool:
    """True for a motion that is close to its truth."""
    if truth is None:
        return False
    gate = (OUTDOOR_GATES if outdoor else INDOOR_GATES)[0]
    return bool(within(translation_error(T, truth), rotation_error(T, truth), gate))


def questions(
    dataset: PairDataset, numbers: dict[str, int], seed: int, hidden: float = 0.0
) -> list[Question]:
    """At most `numbers[kind]` questions of each kind about clouds, in a fixed order.

    true       pairs that overlap
    apart      pairs of one simulated scene that share nothing
    alike      clouds of simulated scenes with the same furniture, or of streets of one kind
    unrelated  clouds of different scenes; none if there is only one scene
    mirrored   the mirror image of a cloud against, in turns, the cloud itself and the other one of its pair
    slid       pairs that overlap and a motion that is off by 0.3 to 1 m, outdoors by 2 to 6 m

    The fraction `hidden` of all but mirrored questions has no viewpoints, three in ten of these a merged
    source.
    """
    rng = np.random.default_rng(seed)
    kinds = {
        "true": [pair for pair in dataset.pairs if not pair.consecutive],
        "apart": getattr(dataset, "apart", []),
    }
    asked = [
        (pair.source, pair.target, pair.T_target_source, kind)
        for kind, pairs in kinds.items()
        for pair in evenly(pairs, numbers[kind])
    ]
    scene_of = {name: pair.scene for pair in dataset.pairs for name in (pair.source, pair.target)}
    asked += [(*each[:3], "slid") for each in asked if each[3] == "true"][: numbers["slid"]]
    for kind in ("alike", "unrelated"):
        able = {name: others for name in sorted(scene_of) if (others := _others(name, scene_of, kind))}
        for _ in range(numbers[kind] if able else 0):
            source = str(rng.choice(list(able)))
            asked.append((source, str(rng.choice(able[source])), None, kind))
    for turn, pair in enumerate(evenly(dataset.pairs, numbers["mirrored"])):
        asked.append((pair.source, pair.source if turn % 2 else pair.target, None, "mirrored"))
    found = []
    for source, target, T, kind in asked:
        is_hidden, is_merged = (rng.random(2) < [hidden, MERGED]).tolist()
        # Without a viewpoint a scan and its mirror image look alike
        is_hidden = is_hidden and kind != "mirrored"
        viewpoint = "auto" if is_hidden else "sensor"
        start = (
            T @ _slide(rng, OUTDOOR_SLIDE if dataset.outdoor else INDOOR_SLIDE) if kind == "slid" else None
        )
        found.append(Question(source, target, T, kind, viewpoint, is_hidden and is_merged, start))
    return found


def _slide(rng: np.random.Generator, metres: tuple[float, float]) -> np.ndarray:
    """Translation (4, 4) in a random direction, by a length from the range `metres`."""
    direction = rng.standard_normal(3)
    return translation(rng.uniform(*metres) / np.linalg.norm(direction) * direction)


def house_of(index: int) -> int:
    """The number of the house, or of the kind of street, of a simulated scene."""
    return index // SCENES_PER_HOUSE


def _others(name: str, scene_of: dict[str, str], kind: str) -> list[str]:
    """The clouds of other scenes; for kind `alike` only of simulated scenes of the same house."""

    def house(cloud: str) -> int | None:
        number = scene_of[cloud].removeprefix("scene-")
        return house_of(int(number)) if number.isdigit() else None

    others = [other for other in scene_of if scene_of[other] != scene_of[name]]
    if kind == "alike":
        return [other for other in others if house(name) is not None and house(other) == house(name)]
    return others


class Answers(NamedTuple):
    """Answers to Q questions, each with up to H refined hypotheses, padded to H."""

    data: np.ndarray  # (Q,) str, the data set
    kind: np.ndarray  # (Q,) str
    values: np.ndarray  # (Q, H, F) float32, values of the terms; NaN for padding
    bounded: np.ndarray  # (Q, H) bool: the evidence proves little, whatever the values
    place: np.ndarray  # (Q, H) int64, the first hypothesis of the same motion
    right: np.ndarray  # (Q, H) bool

    @staticmethod
    def load(*paths: Path) -> "Answers":
        """Read files of answers, as `np.savez` writes the fields."""
        files = [np.load(path) for path in paths]
        return Answers(*(np.concatenate([file[name] for file in files]) for name in Answers._fields))


def answers(
    dataset: PairDataset, scale: SingleScaleRegistrar, asked: list[Question], workers: int | None = None
) -> Answers:
    """All hypotheses of a search for each question whose clouds have enough points."""
    with executor_of(workers, scale.descriptor.device) as executor:
        found = [each for _, each in map_unordered(executor, _answer, (dataset, scale), asked) if each]
    if not found:
        raise InputError(f"{dataset.name}: no pair of clouds has enough points; ask more questions")
    return Answers(*(np.stack(column) for column in zip(*found, strict=True)))


def _answer(dataset: PairDataset, scale: SingleScaleRegistrar, question: Question) -> tuple | None:
    is_mirrored, without = question.kind == "mirrored", question.target if question.merged else None
    described = partial(_described, dataset, scale, viewpoint=question.viewpoint)
    try:
        source, source_frame = described(question.source, is_mirrored=is_mirrored, without=without)
        target, target_frame = described(question.target)
    except InputError:  # too few points
        return None
    if question.kind == "slid":
        T = between_local(question.start, source_frame, target_frame)
        found = [scale.assess(source, target, T)]
    else:
        found = scale.all_hypotheses(source, target)
    values = np.full((MAX_RANKED, len(TERMS)), np.nan, dtype=np.float32)
    bounded, right = np.zeros((2, MAX_RANKED), dtype=bool)
    place = np.arange(MAX_RANKED)
    for n, hypothesis in enumerate(found):
        T = hypothesis.T_target_source
        same = (m for m in range(n) if scale.is_same(source, T, found[m].T_target_source))
        place[n] = next(same, n)
        values[n], bounded[n] = values_of(hypothesis.evidence), proves_little(hypothesis.evidence)
        T_given = between_given(T, source_frame, target_frame)
        right[n] = is_right(T_given, question.T_target_source, dataset.outdoor)
    return dataset.name, question.kind, values, bounded, place, right


@lru_cache(maxsize=60)
def _described(
    dataset: PairDataset,
    scale: SingleScaleRegistrar,
    name: str,
    viewpoint: str,
    is_mirrored: bool = False,
    without: str | None = None,
) -> tuple[DescribedCloud, LocalFrame]:
    """Describe a cloud, mirrored, or merged with its neighbours other than `without`."""
    if without is not None:
        points = merged(dataset, name, without, scale.descriptor.voxel / 2)
    else:
        points = dataset.cloud(name) * (MIRROR if is_mirrored else 1.0)
    cloud = PreparedCloud(Cloud(points), viewpoint, name, device=scale.descriptor.device)
    return cloud.at(scale.descriptor), cloud.frame


def merged(dataset: PairDataset, name: str, without: str, voxel: float) -> np.ndarray:
    """Points (N, 3), one per `voxel` metres, of a cloud and up to two neighbours other than `without`."""
    beside = [(pair.target, inverse(pair.T_target_source)) for pair in dataset.pairs if pair.source == name]
    beside += [(pair.source, pair.T_target_source) for pair in dataset.pairs if pair.target == name]
    others = [each for each in beside if each[0] != without][:MAX_MERGED]
    moved = [transform(T, dataset.cloud(other)) for other, T in others]
    points = np.concatenate([dataset.cloud(name), *moved])
    return points[voxel_downsample(points, voxel)]
