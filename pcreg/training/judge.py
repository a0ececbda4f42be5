"""Fit the confidence model on simulated scans.

    python -m pcreg.training.judge simulated --out answers.npz [--scenes 30] [--places indoor]
    python -m pcreg.training.judge 3dmatch ROOT --out real.npz [--true 100] [--unrelated 50]
    python -m pcreg.training.judge folder SCANS --out real.npz
    python -m pcreg.training.judge fit answers.npz ... [--without TERM ...]

The first three register pairs with ground truth, by the shipped weights or with --descriptor fpfh, and write
the evidence of all hypotheses. They take pairs that overlap, clouds of different scenes, of rooms with the
same furniture and of separate places of one scene, mirror images, and motions close to the truth. `fit`
writes verdict.safetensors. A motion is right within 15 degrees and 0.3 m indoors, within 5 degrees and 2 m
outdoors. `benchmarks/confidence.py` compares the answers with the truth.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn.functional import softplus

from pcreg.datasets.folder import Folder
from pcreg.datasets.simulated import indoor, outdoor
from pcreg.datasets.simulated.mixture import few_beams, scanned_sites, single_objects
from pcreg.datasets.simulated.outdoor.recording import KINDS
from pcreg.datasets.simulated.recorded import Recorded, Recording
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.features.pretrained import ROOM_VOXEL, STREET_VOXEL
from pcreg.io.pairs import PairDataset
from pcreg.registration.judge.confidence import MAX_DEVIATIONS, TERMS, ConfidenceModel, monotonic_network
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.runtime.records import PACKAGE
from pcreg.training.judge_answers import Answers, answers, house_of, questions

# Metres, indoors and outdoors: the choice of `pcreg register` for most of these scans
VOXEL = {"fcgf": (ROOM_VOXEL, STREET_VOXEL), "fpfh": (0.03, 0.4)}
SEED = 2_000_000  # trainings count scenes from 0, validation from 1_000_000
SHARES = {"true": 100, "apart": 20, "alike": 50, "unrelated": 50, "mirrored": 30, "slid": 30}  # in a fit
WEIGHTS = PACKAGE / "weights"
HIDDEN_VIEWPOINTS = 0.5  # of the simulated questions, so that estimated viewpoints are part of the fit
HIDDEN = (16, 8)
EPOCHS = 40
BATCH = 32  # questions
LR = 3e-2
WEIGHT_DECAY = 1e-4
BINS = 10
Layers = list[tuple[Tensor, Tensor]]  # weights (in, out) before their softplus, and biases (out,)


def _room(seed: int, index: int, device: str) -> Recording:
    bend = indoor.BEND if house_of(index) % 2 else 0.0
    return indoor.record(seed, index, device, house=house_of(index), bend=bend)


def _street(by: Callable[..., Recording], seed: int, index: int, device: str) -> Recording:
    return by(seed, index, device, str(np.random.default_rng([seed, house_of(index)]).choice(list(KINDS))))


PLACES = {
    "indoor": _room,
    "outdoor": partial(_street, outdoor.record_by_two),
    "sparse": partial(_street, partial(outdoor.record, again_sparse=True)),
    "objects": single_objects,
    "terrestrial": scanned_sites,
    "few beams": few_beams,
}


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(required=True, dest="verb")
    for verb in ("simulated", "3dmatch", "folder"):
        ask = verbs.add_parser(verb)
        if verb == "simulated":
            ask.add_argument("--scenes", type=int, default=30, help="of each kind")
            ask.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
        else:
            ask.add_argument("root", type=Path)
        hidden = HIDDEN_VIEWPOINTS if verb == "simulated" else 0.0
        ask.add_argument("--hidden", type=float, default=hidden, help="share without viewpoints")
        ask.add_argument("--descriptor", choices=DESCRIPTORS, default=DESCRIPTORS[0])
        ask.add_argument("--out", type=Path, required=True)
        for kind, share in SHARES.items():
            ask.add_argument(f"--{kind}", type=int, default=share, help="questions of this kind")
        ask.add_argument("--seed", type=int, default=SEED, help="of questions and simulated scenes")
        ask.add_argument("--workers", type=int)
        ask.add_argument("--device", default="cpu", help="makes and registers the clouds: cpu, cuda or auto")
    fitted, names = verbs.add_parser("fit"), [term.name for term in TERMS]
    fitted.add_argument("answers", type=Path, nargs="+")
    fitted.add_argument("--out", type=Path, default=WEIGHTS / "verdict.safetensors")
    fitted.add_argument("--without", nargs="+", choices=names, default=(), help="terms")
    options = made.parse_args()
    if options.verb == "fit":
        torch.set_num_threads(1)  # layers of 16 units are too small for several threads
        found = Answers.load(*options.answers)
        fit(found, options.out, without=[names.index(name) for name in options.without])
        print(f"{options.out}: fitted to the answers to {len(found.kind)} questions")
    else:
        collect(options)


def collect(options: argparse.Namespace) -> None:
    """Write the answers to the questions about each data set to a file."""
    numbers, found = {kind: getattr(options, kind) for kind in SHARES}, []
    registrar = Registrar(descriptor=options.descriptor, device=options.device)
    registrar.wait_for_kernels()
    for dataset in _datasets(options):
        asked = questions(dataset, numbers, options.seed, options.hidden)
        scale = registrar.at(VOXEL[options.descriptor][dataset.outdoor])
        found.append(answers(dataset, scale, asked, options.workers))
        print(f"{dataset.name}: {len(found[-1].kind)} of {len(asked)} questions answered", flush=True)
    together = {name: np.concatenate([getattr(each, name) for each in found]) for name in Answers._fields}
    with replacing(options.out) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **together)


def _datasets(options: argparse.Namespace) -> Iterable[PairDataset]:
    indoors, outdoors = VOXEL[options.descriptor]
    if options.verb == "3dmatch":
        yield from (ThreeDMatch(options.root, benchmark) for benchmark in ("3DMatch", "3DLoMatch"))
    elif options.verb == "folder":
        scans = Folder(options.root, outdoors)
        scans.name = options.root.name
        yield scans
    else:
        for place in options.places:
            about = {"per_scene": 4, "device": options.device}
            voxel = outdoors if place in ("outdoor", "sparse") else indoors
            simulated = Recorded(PLACES[place], voxel, options.seed, options.scenes, **about)
            simulated.name = f"simulated {place}"
            yield simulated


def fit(answers: Answers, out: Path, *, without: Sequence[int] = ()) -> None:
    """Fit a network to the values of hypotheses, and write it to a file.

    For each question one hypothesis is right or none is, so the network's log-odds enter a softmax over the
    hypotheses and "none". Each kind of question has a fixed share of the loss, however many were asked. No
    weight is negative; weights of the columns `without` are zero. The same answers give the same file.
    """
    if not answers.right.any():
        raise InputError("no answer is right, so there is nothing to fit to; ask questions about true pairs")
    is_one = np.isfinite(answers.values).all(2)
    mean, deviation = answers.values[is_one].mean(0), answers.values[is_one].std(0) + 1e-6
    scaled = ((answers.values - mean) / deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    used = ~np.isin(np.arange(len(mean)), without)
    right = np.zeros((len(is_one), is_one.shape[1] + 1), dtype=bool)
    np.logical_or.at(right, (np.arange(len(right))[:, None], answers.place), answers.right)
    right[:, -1] = ~right.any(1)
    asked = Counter(answers.kind.tolist())
    share = np.array([SHARES[kind] / asked[kind] for kind in answers.kind.tolist()])
    columns = np.nan_to_num(scaled) * used, answers.place, is_one, right, share / share.mean()
    lists = Lists(*map(torch.from_numpy, columns))
    arrays = {"mean": mean, "deviation": deviation, "usual": answers.values[answers.right].mean(0)}
    for n, (weights, biases) in enumerate(_trained(lists, torch.Generator().manual_seed(0))):
        arrays[f"weights.{n}"] = softplus(weights.detach()).numpy()
        arrays[f"biases.{n}"] = biases.detach().numpy()
    arrays["weights.0"] *= used[:, None]
    with replacing(out) as temporary:
        save_file({name: each.astype(np.float32) for name, each in arrays.items()}, temporary)


class Lists(NamedTuple):
    """Q questions as tensors, each with up to H hypotheses, padded to H."""

    values: Tensor  # (Q, H, F) float32, scaled
    place: Tensor  # (Q, H) int64, the first hypothesis of the same motion
    is_one: Tensor  # (Q, H) bool, False for padding
    right: Tensor  # (Q, H + 1) bool, by place; the last column is "none"
    share: Tensor  # (Q,) float64, weight of the question in the loss

    def loss(self, layers: Layers) -> Tensor:
        """The mean negative log-likelihood of the right answers."""
        positive = [(softplus(weights), biases) for weights, biases in layers]
        log_odds = monotonic_network(positive, self.values).masked_fill(~self.is_one, -math.inf)
        of_places = torch.full_like(log_odds, -math.inf).scatter_reduce(1, self.place, log_odds, "amax")
        scores = torch.cat([of_places, torch.zeros(len(log_odds), 1)], 1)
        right = scores.masked_fill(~self.right, -math.inf)
        return (self.share * (torch.logsumexp(scores, 1) - torch.logsumexp(right, 1))).mean()


def _trained(lists: Lists, generator: torch.Generator) -> Layers:
    """Train layers: weights (in, out), before their softplus, and biases (out,)."""
    sizes = (lists.values.shape[2], *HIDDEN, 1)
    layers = [
        (torch.randn(a, b, generator=generator) / 2 - math.log(a), torch.randn(b, generator=generator) / 2)
        for a, b in pairwise(sizes)
    ]
    optimizer = torch.optim.AdamW(
        [each.requires_grad_() for layer in layers for each in layer], LR, weight_decay=WEIGHT_DECAY
    )
    steps = EPOCHS * -(-len(lists.share) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(lists.share), generator=generator).split(BATCH):
            optimizer.zero_grad()
            Lists(*(each[rows] for each in lists)).loss(layers).backward()
            optimizer.step()
            schedule.step()
    return layers


def answered(answers: Answers, model: ConfidenceModel) -> tuple[np.ndarray, np.ndarray]:
    """Confidence (Q,) of each question's likeliest hypothesis, and True (Q,) if right."""
    is_one, rows = np.isfinite(answers.values).all(2), np.arange(len(answers.values))
    likely = model.probabilities(np.nan_to_num(answers.values), answers.bounded)
    odds = is_one * likely / (1 - likely)
    of_places = np.zeros_like(odds)
    np.maximum.at(of_places, (rows[:, None], answers.place), odds)
    return odds.max(1) / (1 + of_places.sum(1)), answers.right[rows, odds.argmax(1)]


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Mean absolute difference of confidence and share of right answers, over bins weighted by answers."""
    bins = reliability(confidence, right)
    return sum(number * abs(mean - share) for number, mean, share in bins) / len(right)


def reliability(confidence: np.ndarray, right: np.ndarray) -> Iterator[tuple[int, float, float]]:
    """Number of answers, mean confidence and share of right ones of non-empty bins."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    for each in np.unique(bins):
        rows = bins == each
        yield int(rows.sum()), float(confidence[rows].mean()), float(right[rows].mean())


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
