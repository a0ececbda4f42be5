"""The array namespace, and the way to a device and back."""

from typing import Any, TypeAlias

import array_api_compat
import numpy as np

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor


def namespace(*arrays: Array) -> Any:
    """Return the module with the functions of the array API standard for arrays of one kind."""
    return array_api_compat.array_namespace(*arrays)


def is_on_host(array: Array) -> bool:
    """True for a NumPy array."""
    return isinstance(array, np.ndarray)


def device_of(array: Array) -> Any:
    """Return the device that the namespace's functions take for new arrays beside this one."""
    return array_api_compat.device(array)


def to_device(array: Array, device: str) -> Array:
    """Return the array on a device: a NumPy array for `cpu`, else a tensor."""
    return to_host(array) if device == "cpu" else _tensor(array, device)


def like(array: Any, other: Array) -> Array:
    """Return the array, or nested sequence, as one of the kind and on the device of another one."""
    return to_host(array) if is_on_host(other) else _tensor(array, other.device)


def to_host(array: Any) -> np.ndarray:
    """Return the array as a NumPy array, after the device has computed it."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else np.asarray(array)


def take(array: Array, rows: Array, axis: int = 0) -> Array:
    """Return rows (M,) int64 of an array (N, ...), or columns along another axis, in C order."""
    if is_on_host(array):
        return array.take(rows, axis)
    return array.index_select(axis, rows)  # the namespace's has three launches more, for negative rows


def _tensor(array: Any, device: Any) -> Array:
    import torch

    if not isinstance(array, torch.Tensor):
        array = torch.from_numpy(np.ascontiguousarray(array))
    return array.to(device, non_blocking=True)


def every_nth(rows: Array, max_rows: int) -> Array:
    """Return every n-th of rows (N, ...), n being the least that leaves `max_rows` at most."""
    return rows[:: max(1, -(-len(rows) // max_rows))]
