"""Copies of tensors: to and from a device without waiting for its other work, and aligned ones."""

import torch
from torch import Tensor


def to_device(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on `device`. A copy to a GPU is queued there, and the caller does not wait."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def aligned(tensor: Tensor) -> Tensor:
    """The tensor, contiguous and beginning at a multiple of 16 bytes, as all that torch allocates does."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()
