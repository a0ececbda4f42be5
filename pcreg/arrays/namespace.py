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


def to_device(array: Array, device: str) -> Array:
    """Return the array on a device: a NumPy array for `cpu`, else a tensor."""
    if device == "cpu":
        return to_host(array)
    import torch

    if isinstance(array, torch.Tensor):
        return array.to(device)
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)


def like(array: Any, other: Array) -> Array:
    """Return the array of the same kind and on the same device as another one."""
    return to_host(array) if is_on_host(other) else to_device(np.asarray(array), str(other.device))


def to_host(array: Array) -> np.ndarray:
    """Return the array as a NumPy array, after the device has computed it."""
    return array if is_on_host(array) else array.detach().cpu().numpy()
