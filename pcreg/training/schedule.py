"""Learning rates over a training."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def one_cycle(optimizer: Optimizer, epochs: int, warmup_fraction: float = 0.1) -> LambdaLR:
    """Up to the optimizer's rate within `warmup_fraction` of the epochs, then down to zero as a cosine."""
    top = max(1, round(warmup_fraction * epochs))

    def factor(epoch: int) -> float:
        if epoch < top:
            return (epoch + 1) / top
        return (1 + math.cos(math.pi * (epoch - top) / max(1, epochs - top))) / 2

    return LambdaLR(optimizer, factor)
