"""Tensors from the CPU to a device, without waiting for what the device has still to do."""

import torch
from torch import Tensor


def moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """The tensor on `device`. A copy to a GPU waits there in line, not the caller here."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
