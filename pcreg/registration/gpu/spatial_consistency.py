"""Motions from matches of which very few are right, found by what they have in common."""

import numpy as np
import torch
from torch import Tensor

from pcreg.geometry.se3 import procrustes
from pcreg.registration.estimation.msac import Floats
from pcreg.registration.gpu.arrays import array, on
from pcreg.registration.matching.prior import ANY, VERTICAL_SLACK, Prior
from pcreg.registration.matching.spatial_consistency import (
    MAX_GROUP,
    MAX_SEEDS,
    MIN_EDGE_DISTANCES,
    MIN_MATCHES,
    POWER_ITERATIONS,
)


def consistent_motions(
    source: Floats, target: Floats, distance: float, prior: Prior = ANY, device: str = "cuda"
) -> Floats:
    """Those of pcreg.registration.matching.spatial_consistency, on a device."""
    if len(source) < MIN_MATCHES:
        return np.empty((0, 4, 4))
    agree = _agreement(source, target, distance, prior, device)
    seeds = _seeds(agree)
    shared = agree[seeds] * (agree[seeds] @ agree)  # how many matches agree with both
    group = shared.topk(min(MAX_GROUP, len(source) - 1), 1).indices
    group = torch.cat([seeds[:, None], group], 1)
    within = agree[group[:, :, None], group[:, None]]
    weights = _leading_eigenvector(within * (within @ within)).double()
    weights, rows = np.hsplit(array(torch.cat([weights, group.double()], 1)), 2)  # with one wait
    usable = (weights > 0).sum(1) >= MIN_MATCHES
    rows, weights = rows[usable].astype(np.int64), weights[usable]
    motions = procrustes(source[rows], target[rows], weights)
    return motions[prior.allows(motions, distance)]


def _agreement(source: Floats, target: Floats, distance: float, prior: Prior, device: str) -> Tensor:
    """1 where two matches agree, else 0: (P, P) float32."""
    in_source, in_target = (_distances(on(side - side.mean(0), device).float()) for side in (source, target))
    long = torch.minimum(in_source, in_target) > MIN_EDGE_DISTANCES * distance
    agree = long & ((in_source - in_target).abs() < distance)
    if (raised := prior.heights_differ(source, target)) is not None:
        heights = on(raised, device).float()
        agree &= (heights[:, None] - heights).abs() < distance + VERTICAL_SLACK * in_source
    return agree.float()


def _distances(points: Tensor) -> Tensor:
    """Between all points (P, 3): (P, P)."""
    squares = (points**2).sum(1)
    return (squares[:, None] + squares - 2 * (points @ points.T)).clamp(min=0).sqrt()


def _seeds(agree: Tensor) -> Tensor:
    """Rows (S,) of matches, ascending: the likeliest and some from everywhere."""
    P = len(agree)
    likely = _leading_eigenvector(agree[None])[0].argsort(descending=True, stable=True)[: MAX_SEEDS // 2]
    everywhere = np.linspace(0, P - 1, min(MAX_SEEDS // 2, P)).astype(int)
    return torch.cat([likely, on(everywhere, str(agree.device))]).unique()


def _leading_eigenvector(matrices: Tensor) -> Tensor:
    """Of each symmetric matrix (S, P, P) without negative entries: (S, P), by power iteration."""
    # With rows that add up to one at most no step needs to be scaled: of P entries the largest eigenvalue
    # is a P^-0.5 of that at least
    matrices = matrices / matrices.sum(2).amax(1).clamp(min=1e-9)[:, None, None]
    vectors = torch.ones(matrices.shape[:2], dtype=matrices.dtype, device=matrices.device)
    for _ in range(POWER_ITERATIONS):
        vectors = (matrices @ vectors[..., None])[..., 0]
    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=1e-30)
