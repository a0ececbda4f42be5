"""Fit the confidence model on simulated scans.

    python -m pcreg.training.judge simulated --out answers.npz [--scenes 30] [--places indoor]
    python -m pcreg.training.judge 3dmatch ROOT --out real.npz [--true 100] [--unrelated 50]
    python -m pcreg.training.judge folder SCANS --out real.npz
    python -m pcreg.training.judge fit answers.npz ... [--without TERM ...]

The first three register pairs with a given truth, by the shipped weights or with --descriptor fpfh, and
write the values of all hypotheses: pairs that overlap, clouds of different scenes, of rooms with the same
furniture, of other places of one scene, clouds against mirror images, and motions beside the truth. `fit`
writes verdict.safetensors. A motion is right within 15 degrees and 0.3 m indoors, within 5 degrees and 2 m
outdoors. `benchmarks/confidence.py` holds the answers against the truth.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load

from pcreg.datasets.folder import Folder
from pcreg.datasets.simulated import indoor, outdoor
from pcreg.datasets.simulated.mixture import scanned_sites, single_objects
from pcreg.datasets.simulated.outdoor.recording import KINDS
from pcreg.datasets.simulated.recorded import Recorded, Recording
from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.features.pretrained import ROOM_VOXEL, STREET_VOXEL
from pcreg.io.pairs import PairDataset
from pcreg.registration.judge.confidence import ConfidenceModel, probabilities
from pcreg.registration.judge.confidence_terms import TERMS
from pcreg.registration.judge.points import PointNetwork
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.training.judge_answers import Answers, answers, house_of, questions
from pcreg.training.judge_fit import SHARES, fit

# Metres, indoors and outdoors: the choice of `pcreg register` for most of these scans
VOXEL = {"fcgf": (ROOM_VOXEL, STREET_VOXEL), "fpfh": (0.03, 0.4)}
SEED = 2_000_000  # trainings count scenes from 0, validation from 1_000_000
WEIGHTS = Path(__file__).parents[1] / "weights"
HIDDEN_VIEWPOINTS = 0.5  # of the simulated questions, so that estimated viewpoints are part of the fit
BINS = 10


def _room(seed: int, index: int, device: str) -> Recording:
    bend = indoor.BEND if house_of(index) % 2 else 0.0
    return indoor.record(seed, index, device, house=house_of(index), bend=bend)


def _street(seed: int, index: int, device: str, *, again_sparse: bool = False) -> Recording:
    kind = str(np.random.default_rng([seed, house_of(index)]).choice(list(KINDS)))
    if again_sparse:
        return outdoor.record(seed, index, device, kind, again_sparse=True)
    return outdoor.record_by_two(seed, index, device, kind)


PLACES = {
    "indoor": _room,
    "outdoor": _street,
    "sparse": partial(_street, again_sparse=True),
    "objects": single_objects,
    "terrestrial": scanned_sites,
}


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(required=True, dest="verb")
    for verb in ("simulated", "3dmatch", "folder"):
        ask = verbs.add_parser(verb)
        if verb == "simulated":
            ask.add_argument("--scenes", type=int, default=30, help="of each kind")
            ask.add_argument("--device", default="cpu", help="makes the scenes: cpu, cuda or auto")
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
    fitted, names = verbs.add_parser("fit"), [term.name for term in TERMS]
    fitted.add_argument("answers", type=Path, nargs="+")
    fitted.add_argument("--out", type=Path, default=WEIGHTS / "verdict.safetensors")
    fitted.add_argument("--terms", type=Path, help="keep this file's networks over terms")
    fitted.add_argument("--without", nargs="+", choices=names, default=(), help="terms")
    options = made.parse_args()
    if options.verb == "fit":
        torch.set_num_threads(1)  # layers of 16 units: threads would wait for one another
        found = Answers.load(*options.answers)
        terms = load(options.terms.read_bytes()) if options.terms else None
        fit(found, options.out, without=[names.index(name) for name in options.without], terms=terms)
        print(f"{options.out}: fitted to the answers to {len(found.kind)} questions")
    else:
        collect(options)


def collect(options: argparse.Namespace) -> None:
    """Write the answers to the questions about each data set to a file."""
    numbers, found = {kind: getattr(options, kind) for kind in SHARES}, []
    registrar = Registrar(descriptor=options.descriptor)
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


def answered(answers: Answers, model: ConfidenceModel, points: PointNetwork) -> tuple[np.ndarray, np.ndarray]:
    """The confidence (Q,) in the likeliest hypothesis of each question, and if it is right (Q,)."""
    is_one, rows = np.isfinite(answers.values).all(2), np.arange(len(answers.values))
    log_odds = model.log_odds(np.nan_to_num(answers.values)) + answers.point_log_odds(points)
    likely = probabilities(log_odds, answers.bounded)
    odds = is_one * likely / (1 - likely)
    of_places = np.zeros_like(odds)
    np.maximum.at(of_places, (rows[:, None], answers.place), odds)
    return odds.max(1) / (1 + of_places.sum(1)), answers.right[rows, odds.argmax(1)]


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
