"""Learning rates, gradients as one array, and an average of the weights."""

import math
from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def one_cycle(optimizer: Optimizer, epochs: int, warmup_fraction: float = 0.1) -> LambdaLR:
    """Linear warm-up in `warmup_fraction` of the epochs, then decay as a cosine."""
    top = max(1, round(warmup_fraction * epochs))

    def factor(epoch: int) -> float:
        if epoch < top:
            return (epoch + 1) / top
        return (1 + math.cos(math.pi * (epoch - top) / max(1, epochs - top))) / 2

    return LambdaLR(optimizer, factor)


def as_one(parameters: Sequence[nn.Parameter]) -> Tensor:
    """Gradients of parameters as one array (P,); each gradient becomes a view of it.

    One launch can then sum all gradients over processes, or compute their norm. Gradients of a GraphedNetwork
    are views of one array already.
    """
    gradients = [parameter.grad for parameter in parameters]
    whole = gradients[0]._base
    size = sum(gradient.numel() for gradient in gradients)
    if whole is not None and whole.numel() == size and all(each._base is whole for each in gradients):
        return whole
    whole = torch.cat([gradient.flatten() for gradient in gradients])
    for parameter, gradient in zip(parameters, views(whole, gradients), strict=True):
        parameter.grad = gradient
    return whole


def views(whole: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Views of an array (P,) in the shapes of tensors that have P numbers in total."""
    parts = whole.split([each.numel() for each in like])
    return [part.view_as(each) for part, each in zip(parts, like, strict=True)]


class AveragedNetwork(nn.Module):
    """Exponential average of a network, in its copy `module`.

    Statistics of norms are averaged, too. torch.optim.swa_utils.AveragedModel computes the same, but waits
    for the GPU and updates counters of batches one by one.
    """

    def __init__(self, network: nn.Module, decay: float):
        super().__init__()
        self.module, self.decay = deepcopy(network), decay
        self.register_buffer("n_averaged", torch.tensor(0))  # on the CPU

    @torch.no_grad()
    def update(self, network: nn.Module) -> None:
        """Move the average towards `network` by 1 - decay; the first call copies `network`."""
        first, copied, averaged = int(self.n_averaged) == 0, [], []
        for pair in zip(_values(self.module), _values(network), strict=True):
            is_copied = first or not pair[0].is_floating_point()
            (copied if is_copied else averaged).append(pair)
        if averaged:
            torch._foreach_lerp_(*map(list, zip(*averaged, strict=True)), 1 - self.decay)
        if copied:
            torch._foreach_copy_(*map(list, zip(*copied, strict=True)))
        self.n_averaged += 1


def _values(network: nn.Module) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]
