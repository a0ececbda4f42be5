"""Arrays to a device and back."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MAX_KEPT_BYTES = 1 << 28  # of all that is kept on devices

_kept: OrderedDict[tuple[int, str], tuple[object, Tensor]] = OrderedDict()  # latest last
_sizes: dict[str, int] = {}  # bytes of them, by device
_keeping = Lock()


class DeviceArray:
    """Rows on a device, of which an array is made where NumPy asks for one."""

    def __init__(self, tensor: Tensor, device: str) -> None:
        self._tensor, self.device = tensor, device

    @property
    def tensor(self) -> Tensor:
        return self._tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: NDArray[np.int64], axis: int) -> "DeviceArray":
        """Some rows (M,), the axis being 0, on the device."""
        return DeviceArray(self.tensor.index_select(axis, on(rows, self.device)), self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.generic]:
        """An array that nobody changes: asked for it, the device has its rows already."""
        found = array(self.tensor)
        kept(found, self.device, lambda: self.tensor)
        return np.asarray(found, dtype)


def on(array: "NDArray[np.generic] | DeviceArray", device: str) -> Tensor:
    """A contiguous copy of the array on the device, or on the CPU perhaps the array itself.

    Of one that is kept there it is the same each time, not to be written to.
    """
    if isinstance(array, DeviceArray):
        return array.tensor
    found = _kept.get((id(array), device))
    if found is not None:
        return found[1]
    # What the device has still to do is not waited for: the array has been read when this returns.
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)


def kept_on(array: "NDArray[np.generic] | DeviceArray | Tensor", device: str) -> Tensor:
    """As `on`, of an array that nobody changes: while it is among the latest it is brought there once.

    A tensor is taken as it is.
    """
    if isinstance(array, DeviceArray):
        return array.tensor
    if isinstance(array, Tensor):
        return array.to(device)
    return kept(array, device, lambda: on(array, device))


def kept(owner: object, device: str, bring: Callable[[], Tensor]) -> Tensor:
    """What `bring` returns for an owner that nobody changes: called once while that is among the latest."""
    key = id(owner), device  # of nothing else while this one is kept
    with _keeping:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key][1]
    tensor = bring()
    with _keeping:
        _forget(key)  # another thread brought it meanwhile
        _kept[key] = owner, tensor
        _sizes[device] = _sizes.get(device, 0) + tensor.nbytes
        while sum(_sizes.values()) > MAX_KEPT_BYTES:
            _forget(next(iter(_kept)))
    return tensor


def _forget(key: tuple[int, str]) -> None:
    if key in _kept:
        _, tensor = _kept.pop(key)
        _sizes[key[1]] -= tensor.nbytes


def array(tensor: Tensor) -> NDArray[np.float64]:
    """The tensor as an array, in float64 where it holds floating-point numbers."""
    found: NDArray[np.float64] = (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
    return found


def motion(T: NDArray[np.float64], device: str) -> tuple[Tensor, Tensor]:
    """The rotations, transposed for rows of points, and translations of motions (..., 4, 4)."""
    moved = on(T, device)
    return moved[..., :3, :3].transpose(-1, -2), moved[..., :3, 3]
