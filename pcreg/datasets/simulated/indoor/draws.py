"""Draws of a few numbers, or one of a few things: as of NumPy's generator, in a fraction of its time.

The generator makes arrays of its arguments and its results. Where a chair needs four numbers, that takes
several times as long as the numbers, and so does all that is done with them afterwards.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def between(rng: np.random.Generator, low: Sequence[float], high: Sequence[float]) -> list[float]:
    """The numbers of `rng.uniform(low, high)`: each between its own bounds."""
    return [a + (b - a) * rng.random() for a, b in zip(low, high, strict=True)]


def one_of(rng: np.random.Generator, options: Sequence[T]) -> T:
    """The option that `rng.choice(options)` draws, unconverted."""
    return options[rng.integers(len(options))]
