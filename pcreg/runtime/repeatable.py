"""Results that are the same each time, to the last bit."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def repeatable() -> Iterator[None]:
    """Have PyTorch add sums up in a fixed order, where it can: on a GPU, and with threads on a CPU."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)
