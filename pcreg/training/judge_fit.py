"""The fit of the confidence model to answers whose truth is given."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn.functional import relu, softplus

from pcreg.registration.judge import points
from pcreg.registration.judge.confidence import MAX_DEVIATIONS, ConfidenceModel
from pcreg.runtime.files import replacing
from pcreg.training.judge_answers import Answers

KINDS_OF_QUESTIONS = "true", "apart", "alike", "unrelated", "mirrored", "slid"
SHARES = dict(zip(KINDS_OF_QUESTIONS, (100, 20, 50, 50, 30, 30), strict=True))  # in a fit
NETWORKS = 3  # of either kind, from different first weights
BATCH = 32  # questions
HIDDEN = (16, 8)  # units of the networks over terms
EPOCHS = 40
LR = 3e-2
WEIGHT_DECAY = 1e-4
WIDTH = 32  # units of the networks over points
POINT_EPOCHS = 20
POINT_LR = 8e-3
# The loss of 1,093 held-out questions is 0.171 so, 0.185 with 0.1, and 0.211 by the terms alone
POINT_WEIGHT_DECAY = 0.3
Layers = list[tuple[Tensor, Tensor]]  # weights (in, out), of terms before their softplus, and biases (out,)


class Lists(NamedTuple):
    """Q questions as tensors, with H rows each for up to H hypotheses."""

    place: Tensor  # (Q, H) int64, the first row about the same motion
    is_one: Tensor  # (Q, H) bool; else there are fewer hypotheses
    right: Tensor  # (Q, H + 1) bool, of places; the last is "none"
    share: Tensor  # (Q,) float64, of the question in the loss

    @staticmethod
    def of(answers: Answers) -> "Lists":
        """The answers to questions whose kinds have fixed shares."""
        is_one = np.isfinite(answers.values).all(2)
        right = np.zeros((len(is_one), is_one.shape[1] + 1), dtype=bool)
        np.logical_or.at(right, (np.arange(len(right))[:, None], answers.place), answers.right)
        right[:, -1] = ~right.any(1)
        asked = Counter(answers.kind.tolist())
        share = np.array([SHARES[kind] / asked[kind] for kind in answers.kind.tolist()])
        return Lists(*map(torch.from_numpy, (answers.place, is_one, right, share / share.mean())))

    def loss(self, log_odds: Tensor) -> Tensor:
        """The mean negative log-likelihood of the right answers, by log-odds (Q, H) of the hypotheses."""
        log_odds = log_odds.masked_fill(~self.is_one, -math.inf)
        of_places = torch.full_like(log_odds, -math.inf).scatter_reduce(1, self.place, log_odds, "amax")
        scores = torch.cat([of_places, torch.zeros(len(log_odds), 1)], 1)
        right = scores.masked_fill(~self.right, -math.inf)
        return (self.share * (torch.logsumexp(scores, 1) - torch.logsumexp(right, 1))).mean()

    def train(
        self,
        layers: Layers,
        log_odds: Callable[[Layers, Tensor], Tensor],
        epochs: int,
        lr: float,
        weight_decay: float,
        generator: torch.Generator,
    ) -> None:
        """Train layers, with which `log_odds` (B, H) are those of the questions in rows (B,)."""
        parameters = [each.requires_grad_() for layer in layers for each in layer]
        optimizer = torch.optim.AdamW(parameters, lr, weight_decay=weight_decay)
        steps = epochs * -(-len(self.share) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
        for _ in range(epochs):
            for rows in torch.randperm(len(self.share), generator=generator).split(BATCH):
                optimizer.zero_grad()
                Lists(*(each[rows] for each in self)).loss(log_odds(layers, rows)).backward()
                optimizer.step()
                schedule.step()


class Motions(NamedTuple):
    """The points of all motions of the questions, padded."""

    index: Tensor  # (Q, H) int64, the motion of a hypothesis
    counts: Tensor  # (M,) int64
    points: Tensor  # (M, most, CHANNELS) float16, scaled

    @staticmethod
    def of(answers: Answers, mean: np.ndarray, deviation: np.ndarray) -> "Motions":
        """The motions of answers, their points scaled by mean and deviation (CHANNELS,)."""
        some = answers.counts > 0
        index = np.zeros(some.shape, dtype=np.int64)
        index[some] = np.arange(some.sum())
        index = np.take_along_axis(index, answers.place, 1)
        counts = answers.counts[some]
        padded = np.zeros((len(counts), counts.max(), points.CHANNELS), dtype=np.float16)
        padded[np.arange(counts.max()) < counts[:, None]] = points.scaled(answers.points, mean, deviation)
        return Motions(*map(torch.from_numpy, (index, counts, padded)))

    def log_odds(self, layers: Layers, rows: Tensor) -> Tensor:
        """What points add to the log-odds (B, H) of the hypotheses of questions in rows (B,)."""
        motions, back = torch.unique(self.index[rows], return_inverse=True)
        counts, x = self.counts[motions, None], self.points[motions].float()
        first, second, third, last = layers
        for weights, biases in (first, second):
            x = relu(x @ weights + biases)
        x = x * (torch.arange(x.shape[1]) < counts)[..., None]
        x = torch.cat([x.sum(1) / counts, x.amax(1)], 1)
        x = relu(x @ third[0] + third[1]) @ last[0] + last[1]
        return x[back, 0]


def fit(
    answers: Answers, out: Path, *, without: Sequence[int] = (), terms: Mapping[str, np.ndarray] | None = None
) -> None:
    """Fit networks to the values of hypotheses, then others to their points, and write them to a file.

    Of each question one hypothesis is right, or none is: log-odds are those of a softmax over the hypotheses
    and "none". The kinds of questions have fixed shares, however many of each were asked. Over terms no
    weight is negative, and those of the columns `without` are zero. What points add is fitted to these
    networks as they are, or to those of another file, `terms`. The same answers give the same file.
    """
    lists = Lists.of(answers)
    arrays = dict(terms or _over_terms(answers, lists, without))
    arrays |= _over_points(answers, lists, ConfidenceModel.of(arrays))
    with replacing(out) as temporary:
        save_file({name: np.ascontiguousarray(each, np.float32) for name, each in arrays.items()}, temporary)


def _over_terms(answers: Answers, lists: Lists, without: Sequence[int]) -> dict[str, np.ndarray]:
    values = answers.values[lists.is_one.numpy()]
    mean, deviation = values.mean(0), values.std(0) + 1e-6
    scaled = ((answers.values - mean) / deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    used = ~np.isin(np.arange(len(mean)), without)
    x, networks = torch.from_numpy(np.nan_to_num(scaled) * used), []
    for seed in range(NETWORKS):
        generator = torch.Generator().manual_seed(seed)
        normal, sizes = partial(torch.randn, generator=generator), pairwise((len(mean), *HIDDEN, 1))
        layers = [(normal(a, b) / 2 - math.log(a), normal(b) / 2) for a, b in sizes]
        lists.train(layers, lambda of, rows: _of_terms(of, x[rows]), EPOCHS, LR, WEIGHT_DECAY, generator)
        networks.append([(softplus(weights), biases) for weights, biases in layers])
    arrays = {"mean": mean, "deviation": deviation, "usual": answers.values[answers.right].mean(0)}
    arrays |= _stacked(networks)
    arrays["weights.0"] *= used[:, None]
    return arrays


def _of_terms(layers: Layers, x: Tensor) -> Tensor:
    *hidden, (weights, biases) = layers
    for w, b in hidden:
        upwards, downwards = (x @ softplus(w) + b).chunk(2, -1)
        x = torch.cat([softplus(upwards), -softplus(-downwards)], -1)
    return (x @ softplus(weights) + biases)[..., 0]


def _over_points(answers: Answers, lists: Lists, model: ConfidenceModel) -> dict[str, np.ndarray]:
    mean, deviation = (each(answers.points, 0, dtype=np.float64) for each in (np.mean, np.std))
    motions, networks = Motions.of(answers, mean, deviation), []
    base = torch.from_numpy(model.log_odds(np.nan_to_num(answers.values)).astype(np.float32))
    sizes = (points.CHANNELS, WIDTH), (WIDTH, WIDTH), (2 * WIDTH, WIDTH), (WIDTH, 1)
    for seed in range(NETWORKS):
        generator = torch.Generator().manual_seed(seed)
        layers = [(torch.randn(a, b, generator=generator) * (2 / a) ** 0.5, torch.zeros(b)) for a, b in sizes]
        layers[-1][0].mul_(0.1)  # to begin with, points add little
        lists.train(
            layers,
            lambda of, rows: base[rows] + motions.log_odds(of, rows),
            POINT_EPOCHS,
            POINT_LR,
            POINT_WEIGHT_DECAY,
            generator,
        )
        networks.append(layers)
    return _stacked(networks, "points.") | {"points.mean": mean, "points.deviation": deviation}


def _stacked(networks: Sequence[Layers], prefix: str = "") -> dict[str, np.ndarray]:
    """The weights (networks, in, out) and biases (networks, out) of each layer, by name."""
    arrays = {}
    for n, layers in enumerate(zip(*networks, strict=True)):
        for name, tensors in zip(("weights", "biases"), zip(*layers, strict=True), strict=True):
            arrays[f"{prefix}{name}.{n}"] = torch.stack(tensors).detach().numpy()
    return arrays
