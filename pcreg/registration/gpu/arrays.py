"""Arrays to a device and back."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def on(array: NDArray[np.generic], device: str) -> Tensor:
    """A contiguous copy of the array on the device, or on the CPU perhaps the array itself."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def array(tensor: Tensor) -> NDArray[np.float64]:
    """The tensor as an array, in float64 where it holds floating-point numbers."""
    found: NDArray[np.float64] = (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
    return found


def motion(T: NDArray[np.float64], device: str) -> tuple[Tensor, Tensor]:
    """The rotations, transposed for rows of points, and translations of motions (..., 4, 4)."""
    moved = on(T, device)
    return moved[..., :3, :3].transpose(-1, -2), moved[..., :3, 3]
