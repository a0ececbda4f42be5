"""The gradients of all parameters as one array: summed over processes, or measured, by one launch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def as_one(parameters: Sequence[nn.Parameter]) -> Tensor:
    """The gradients of parameters (P,), one after another; each is a view of it from now on, and None stays.

    They may be views of one array already, as those of a GraphedNetwork are.
    """
    trained = [parameter for parameter in parameters if parameter.grad is not None]
    gradients = [parameter.grad for parameter in trained]
    whole = gradients[0]._base
    size = sum(gradient.numel() for gradient in gradients)
    if whole is not None and whole.numel() == size and all(each._base is whole for each in gradients):
        return whole
    whole = torch.cat([gradient.flatten() for gradient in gradients])
    for parameter, gradient in zip(trained, views(whole, gradients), strict=True):
        parameter.grad = gradient
    return whole


def views(whole: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The parts of an array (P,), in the shapes of tensors that have as many numbers together."""
    parts = whole.split([each.numel() for each in like])
    return [part.view_as(each) for part, each in zip(parts, like, strict=True)]
