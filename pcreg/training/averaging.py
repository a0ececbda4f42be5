"""An exponential average of a network over its training."""

from copy import deepcopy

import torch
from torch import nn


class AveragedNetwork(nn.Module):
    """`module`, a copy of a network that follows its weights and the statistics of its norms.

    torch.optim.swa_utils.AveragedModel computes the same, but has the GPU waited for and updates
    counters of batches one by one.
    """

    def __init__(self, network: nn.Module, decay: float):
        super().__init__()
        self.module, self.decay = deepcopy(network), decay
        self.register_buffer("n_averaged", torch.tensor(0))  # on the CPU

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Come nearer to `network` by 1 - decay; the first time, become equal to it."""
        first, copied, averaged = int(self.n_averaged) == 0, [], []
        for pair in zip(_values(self.module), _values(network), strict=True):
            is_copied = first or not pair[0].is_floating_point()
            (copied if is_copied else averaged).append(pair)
        if averaged:
            torch._foreach_lerp_(*map(list, zip(*averaged, strict=True)), 1 - self.decay)
        if copied:
            torch._foreach_copy_(*map(list, zip(*copied, strict=True)))
        self.n_averaged += 1


def _values(network: nn.Module) -> list[torch.Tensor]:
    return [*network.parameters(), *network.buffers()]
