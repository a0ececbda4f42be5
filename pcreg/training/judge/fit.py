"""Confidence models fitted to right and wrong motions, and their calibration."""

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from pcreg.registration.judge.confidence import MAX_DEVIATIONS
from pcreg.runtime.files import replacing

NETWORKS = 3  # from different first weights
HIDDEN = (16, 8)
EPOCHS, LOGISTIC_EPOCHS = 60, 600  # a logistic model is fitted to few motions
BATCH = 256
LR = 3e-2
WEIGHT_DECAY = 1e-4
BINS = 10


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
