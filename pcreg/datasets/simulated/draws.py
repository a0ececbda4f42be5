"""Random numbers: NumPy's for scenes and paths; torch's, on their device, for rays and pixels."""

import numpy as np
import torch
from torch import Tensor

Device = torch.device | str


def random_of(seed: int, index: int, device: Device) -> tuple[np.random.Generator, torch.Generator]:
    """Random generators of a recording, on the host and on the device."""
    rng = np.random.default_rng([seed, index])
    return rng, torch.Generator(device).manual_seed(int(rng.integers(2**62)))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number from `low` to `high` whose logarithm is uniform."""
    return float(np.exp(rng.uniform(*np.log((low, high)))))


def by_share(shares: dict, place: float):
    """Key at `place` in [0, 1), with intervals in proportion to the shares."""
    ends = np.cumsum(list(shares.values()))
    return list(shares)[ends.searchsorted(place * ends[-1], side="right")]


def uniform(generator: torch.Generator, *shape: int) -> Tensor:
    """Uniform float32 numbers from 0 to 1, on the device of the generator."""
    return torch.rand(shape, generator=generator, device=generator.device)


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Standard normal float32 numbers, on the device of the generator."""
    return torch.randn(shape, generator=generator, device=generator.device)
