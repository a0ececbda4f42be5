"""Fit the confidence model on simulated scans, and measure its calibration.

    python -m pcreg.training.judge simulated --out answers.jsonl [--scenes 30] [--places indoor]
    python -m pcreg.training.judge 3dmatch ROOT --out real.jsonl [--true 100] [--unrelated 50]
    python -m pcreg.training.judge folder SCANS --out real.jsonl
    python -m pcreg.training.judge fit answers.jsonl
    python -m pcreg.training.judge check real.jsonl ...

The first three register pairs with a given truth, by the shipped weights or with --descriptor fpfh, and
append the evidence for each motion found: pairs that overlap, clouds of different scenes, of rooms with the
same furniture, of other places of one scene, and clouds against mirror images. `fit` writes
verdict.safetensors or, for answers by FPFH, verdict_fpfh.safetensors. `check` answers each pair with the
likeliest motion, compares the confidences with how often the answers are right, and counts what is accepted.
A motion is right within 15 degrees and 0.3 m indoors, within 5 degrees and 2 m outdoors.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from pcreg.datasets.folder import Folder
from pcreg.datasets.simulated import indoor, outdoor
from pcreg.datasets.simulated.outdoor.recording import KINDS
from pcreg.datasets.simulated.recorded import Recorded, Recording
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.io.pairs import PairDataset
from pcreg.registration.judge.confidence import MAX_DEVIATIONS, MIN_CONFIDENCE, ConfidenceModel
from pcreg.registration.judge.confidence_terms import values_of
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.training.judge_answers import answers, evidence_of, house_of, questions

# Metres, indoors and outdoors: the choice of `pcreg register` for most of these scans
VOXEL = {"fcgf": (0.05, 0.3), "fpfh": (0.03, 0.4)}
SAMPLES = 1_000_000  # of RANSAC
SEED = 2_000_000  # trainings count scenes from 0, validation from 1_000_000
SHARES = {"true": 100, "apart": 20, "alike": 50, "unrelated": 50, "mirrored": 30}  # of questions, in a fit
WEIGHTS = Path(__file__).parents[1] / "weights"
HIDDEN_VIEWPOINTS = 0.5  # of the simulated questions, so that estimated viewpoints are part of the fit
NETWORKS = 3  # from different first weights
HIDDEN = (16, 8)
EPOCHS, LOGISTIC_EPOCHS = 60, 600  # a logistic model is fitted to few motions
BATCH = 256
LR = 3e-2
WEIGHT_DECAY = 1e-4
BINS = 10


def _room(seed: int, index: int, device: str) -> Recording:
    return indoor.record(seed, index, device, house=house_of(index))


def _street(seed: int, index: int, device: str) -> Recording:
    kind = np.random.default_rng([seed, house_of(index)]).choice(list(KINDS))
    return outdoor.record_by_two(seed, index, device, kind=str(kind))


PLACES = {"indoor": _room, "outdoor": _street}


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(required=True, dest="verb")
    for verb in ("simulated", "3dmatch", "folder"):
        ask = verbs.add_parser(verb)
        if verb == "simulated":
            ask.add_argument("--scenes", type=int, default=30, help="indoors and outdoors each")
            ask.add_argument("--device", default="cpu", help="makes the scenes: cpu, cuda or auto")
            ask.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
        else:
            ask.add_argument("root", type=Path)
        ask.add_argument("--descriptor", choices=DESCRIPTORS, default=DESCRIPTORS[0])
        ask.add_argument("--out", type=Path, required=True)
        for kind, share in SHARES.items():
            ask.add_argument(f"--{kind}", type=int, default=share, help="questions of this kind")
        ask.add_argument("--seed", type=int, default=SEED, help="of questions and simulated scenes")
        ask.add_argument("--workers", type=int)
    for verb in ("fit", "check"):
        verbs.add_parser(verb).add_argument("answers", type=Path, nargs="+")
    verbs.choices["fit"].add_argument("--out", type=Path, default=WEIGHTS, help="folder of the model")
    options = made.parse_args()
    if options.verb not in ("fit", "check"):
        collect(options)
        return
    found = [json.loads(line) for path in options.answers for line in path.read_text().splitlines()]
    if options.verb == "fit":
        fit(found, options.out)
    else:
        report(found)


def collect(options: argparse.Namespace) -> None:
    """Append the answers to the questions about each data set to a file."""
    numbers = {kind: getattr(options, kind) for kind in SHARES}
    hidden = HIDDEN_VIEWPOINTS if options.verb == "simulated" else 0.0
    with options.out.open("a") as file:
        for dataset in _datasets(options):
            asked, number = questions(dataset, numbers, options.seed, hidden), 0
            registrar = Registrar(descriptor=options.descriptor)
            scale = registrar.at(VOXEL[options.descriptor][dataset.outdoor])
            for answer in answers(dataset, replace(scale, iterations=SAMPLES), asked, options.workers):
                print(json.dumps(answer), file=file, flush=True)
                number += 1
            print(f"{dataset.name}: {number} of {len(asked)} questions answered")


def _datasets(options: argparse.Namespace) -> Iterable[PairDataset]:
    voxel = dict(zip(PLACES, VOXEL[options.descriptor], strict=True))
    if options.verb == "3dmatch":
        yield from (ThreeDMatch(options.root, benchmark) for benchmark in ("3DMatch", "3DLoMatch"))
    elif options.verb == "folder":
        scans = Folder(options.root, voxel["outdoor"])
        scans.name = options.root.name
        yield scans
    else:
        for place in options.places:
            about = {"per_scene": 4, "device": options.device}
            simulated = Recorded(PLACES[place], voxel[place], options.seed, options.scenes, **about)
            simulated.name = f"simulated {place}"
            yield simulated


def fit(answers: list[dict[str, Any]], out: Path) -> None:
    """Write the model of one kind of descriptor to the folder `out`.

    The kinds of questions have fixed shares, however many of each were asked. That of FPFH, few of whose
    answers are right, has no hidden layers.
    """
    if len({answer["learned"] for answer in answers}) > 1:
        raise InputError("answers by learned descriptors and by FPFH; fit a model to each")
    asked, learned = Counter(answer["kind"] for answer in answers), answers[0]["learned"]
    found = [(motion, answer["kind"]) for answer in answers for motion in answer["motions"]]
    values = np.array([values_of(evidence_of(motion)) for motion, _ in found])
    right = np.array([motion["right"] for motion, _ in found])
    counts = np.array([SHARES[kind] / asked[kind] for _, kind in found])
    path = out / ("verdict.safetensors" if learned else "verdict_fpfh.safetensors")
    fit_network(values, right, counts, path, HIDDEN if learned else ())
    print(f"{path}: fitted to {len(found)} motions, {right.sum()} right, of {len(answers)} questions")


def fit_network(
    values: np.ndarray,
    right: np.ndarray,
    counts: np.ndarray,
    out: Path,
    hidden: tuple[int, ...] = HIDDEN,
) -> None:
    """Fit networks to the terms (N, F) of motions, right (N,) bool or not.

    Row n counts `counts[n]` times. `hidden` are the units of hidden layers; without any it is logistic.
    No weight is negative. The same motions give the same file.
    """
    mean, deviation = values.mean(0), values.std(0) + 1e-6
    x = torch.from_numpy(((values - mean) / deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)).float()
    y, share = torch.from_numpy(right).float(), torch.from_numpy(counts / counts.mean()).float()
    seeds = (torch.Generator().manual_seed(seed) for seed in range(NETWORKS))
    networks = [_trained(x, y, share, hidden, generator) for generator in seeds]
    arrays = {"mean": mean, "deviation": deviation, "usual": values[right].mean(0)}
    for n, layers in enumerate(zip(*networks, strict=True)):
        arrays[f"weights.{n}"] = np.stack([softplus(weights.detach()).numpy() for weights, _ in layers])
        arrays[f"biases.{n}"] = np.stack([biases.detach().numpy() for _, biases in layers])
    with replacing(out) as temporary:
        save_file({name: each.astype(np.float32) for name, each in arrays.items()}, temporary)


def _trained(
    x: Tensor, y: Tensor, share: Tensor, hidden: tuple[int, ...], generator: torch.Generator
) -> list[tuple[Tensor, Tensor]]:
    """Layers of weights (in, out), before their softplus, and biases (out,)."""
    sizes = (x.shape[1], *hidden, 1)
    layers = [
        (torch.randn(a, b, generator=generator) / 2 - math.log(a), torch.randn(b, generator=generator) / 2)
        for a, b in pairwise(sizes)
    ]
    optimizer = torch.optim.AdamW(
        [each.requires_grad_() for layer in layers for each in layer], LR, weight_decay=WEIGHT_DECAY
    )
    epochs = EPOCHS if hidden else LOGISTIC_EPOCHS
    steps = epochs * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            losses = binary_cross_entropy_with_logits(_log_odds(layers, x[rows]), y[rows], reduction="none")
            optimizer.zero_grad()
            (share[rows] * losses).mean().backward()
            optimizer.step()
            schedule.step()
    return layers


def _log_odds(layers: list[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    *hidden, (weights, biases) = layers
    for w, b in hidden:
        upwards, downwards = (x @ softplus(w) + b).chunk(2, 1)
        x = torch.cat([softplus(upwards), -softplus(-downwards)], 1)
    return (x @ softplus(weights) + biases)[:, 0]


def report(answers: list[dict[str, Any]]) -> None:
    """Print what is accepted, by data set and kind, and how well confidences fit."""
    confidence, right = (np.array(column) for column in zip(*map(_answered, answers), strict=True))
    groups = np.array([f"{answer['data']}, {answer['kind']}" for answer in answers])
    print(f"{'pairs':44} number   right  of these accepted   wrong  of these accepted")
    for group in [*dict.fromkeys(groups.tolist()), "all"]:
        rows = (groups == group) | (group == "all")
        columns = []
        for some in (rows & right, rows & ~right):
            accepted = confidence[some] >= MIN_CONFIDENCE
            share = f"({100 * accepted.mean():5.1f} %)" if some.any() else " " * 9
            columns.append(f"{some.sum():7} {accepted.sum():8} {share}")
        print(f"{group:44} {rows.sum():6} {'   '.join(columns)}")
    print(f"expected calibration error {calibration_error(confidence, right):.3f}")
    print("answers confidence  right")
    for number, mean, share in reliability(confidence, right):
        print(f"{number:7} {mean:10.3f} {share:6.3f}")


def _answered(answer: dict[str, Any]) -> tuple[float, bool]:
    """The confidence in the likeliest motion, and whether it is right."""
    model = ConfidenceModel.shipped(answer["learned"])
    found = [(evidence_of(motion), motion["right"]) for motion in answer["motions"]]
    (best, right), *others = sorted(found, key=lambda each: -model.probability(each[0]))
    return model.verdict(best, [evidence for evidence, _ in others]).confidence, right


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Mean difference between confidence and frequency over ten bins, weighted."""
    bins = reliability(confidence, right)
    return sum(number * abs(mean - share) for number, mean, share in bins) / len(right)


def reliability(confidence: np.ndarray, right: np.ndarray) -> Iterator[tuple[int, float, float]]:
    """The number of answers, their mean confidence and the share of right ones, of bins with any."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    for each in np.unique(bins):
        rows = bins == each
        yield int(rows.sum()), float(confidence[rows].mean()), float(right[rows].mean())


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
