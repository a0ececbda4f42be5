"""Arrays to a device and back."""

from collections import OrderedDict
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MAX_KEPT_BYTES = 1 << 28  # of all arrays that are kept on devices

_kept: OrderedDict[tuple[int, str], tuple[NDArray[np.generic], Tensor]] = OrderedDict()  # latest last
_keeping = Lock()


def on(array: NDArray[np.generic], device: str) -> Tensor:
    """A contiguous copy of the array on the device, or on the CPU perhaps the array itself.

    Of one that is kept there it is the same each time, not to be written to.
    """
    kept = _kept.get((id(array), device))
    if kept is not None:
        return kept[1]
    # What the device has still to do is not waited for: the array has been read when this returns.
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)


def kept_on(array: NDArray[np.generic], device: str) -> Tensor:
    """As `on`, of an array that nobody changes: while it is among the latest it is brought there once."""
    key = id(array), device  # of no other array while this one is kept
    with _keeping:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key][1]
    tensor = on(array, device)
    with _keeping:
        _kept[key] = array, tensor
        while sum(kept.nbytes for kept, _ in _kept.values()) > MAX_KEPT_BYTES:
            _kept.popitem(last=False)
    return tensor


def array(tensor: Tensor) -> NDArray[np.float64]:
    """The tensor as an array, in float64 where it holds floating-point numbers."""
    found: NDArray[np.float64] = (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
    return found


def motion(T: NDArray[np.float64], device: str) -> tuple[Tensor, Tensor]:
    """The rotations, transposed for rows of points, and translations of motions (..., 4, 4)."""
    moved = on(T, device)
    return moved[..., :3, :3].transpose(-1, -2), moved[..., :3, 3]
