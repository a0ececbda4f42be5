"""The fit of the network that gives a motion its probability (pcreg/registration/judge/confidence.py)."""

import math
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
EPOCHS = 60
BATCH = 256
LR = 3e-2
WEIGHT_DECAY = 1e-4


def fit_network(values: np.ndarray, right: np.ndarray, counts: np.ndarray, out: Path) -> None:
    """Fit to the terms (N, F) of motions, right (N,) bool or not; row n counts `counts[n]` times.

    The same motions give the same file.
    """
    mean, deviation = values.mean(0), values.std(0) + 1e-6
    x = torch.from_numpy(((values - mean) / deviation).clip(-MAX_DEVIATIONS, MAX_DEVIATIONS)).float()
    y, share = torch.from_numpy(right).float(), torch.from_numpy(counts / counts.mean()).float()
    networks = [_trained(x, y, share, torch.Generator().manual_seed(seed)) for seed in range(NETWORKS)]
    arrays = {"mean": mean, "deviation": deviation, "usual": values[right].mean(0)}
    for n, layers in enumerate(zip(*networks, strict=True)):
        arrays[f"weights.{n}"] = np.stack([softplus(weights.detach()).numpy() for weights, _ in layers])
        arrays[f"biases.{n}"] = np.stack([biases.detach().numpy() for _, biases in layers])
    with replacing(out) as temporary:
        save_file({name: each.astype(np.float32) for name, each in arrays.items()}, temporary)


def _trained(x: Tensor, y: Tensor, share: Tensor, generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    """What softplus makes weights (in, out) of, none of them negative, and biases (out,), of each layer."""
    sizes = (x.shape[1], *HIDDEN, 1)
    layers = [
        (torch.randn(a, b, generator=generator) / 2 - math.log(a), torch.randn(b, generator=generator) / 2)
        for a, b in pairwise(sizes)
    ]
    numbers = [each.requires_grad_() for layer in layers for each in layer]
    optimizer = torch.optim.AdamW(numbers, LR, weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            log_odds = _forward(layers, x[rows])
            loss = (
                share[rows] * binary_cross_entropy_with_logits(log_odds, y[rows], reduction="none")
            ).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return layers


def _forward(layers: list[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    *hidden, (weights, biases) = layers
    for w, b in hidden:
        upwards, downwards = (x @ softplus(w) + b).chunk(2, 1)
        x = torch.cat([softplus(upwards), -softplus(-downwards)], 1)
    return (x @ softplus(weights) + biases)[:, 0]
