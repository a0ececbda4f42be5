"""Rows that a device computed, which become an array when somebody reads one.

A registration on that device never does: it takes them from where they are. Nobody waits then for what the
device has still to do.
"""

from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Of all rows that nobody has forgotten; beyond it the oldest go to the host, so that what a caller keeps for
# later does not fill the device
MAX_HELD_BYTES = 1 << 28

_held: "WeakKeyDictionary[DeviceRows, None]" = WeakKeyDictionary()  # latest last
_holding = Lock()


class DeviceRows:
    """Rows (N, C) of a tensor that nobody changes. Copied by value or pickled they are an array."""

    def __init__(self, tensor: Tensor) -> None:
        """Of a tensor that the current stream of this thread computes."""
        self.shape = tuple(tensor.shape)
        self._tensor: Tensor | None = tensor
        self._array: NDArray[Any] | None = None
        self._stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
        self._computed = None if self._stream is None else self._stream.record_event()
        self._reading = Lock()
        with _holding:
            _held[self] = None
            excess = sum(rows.nbytes_held for rows in _held) - MAX_HELD_BYTES
            released = []
            for rows in list(_held):
                if excess <= 0:
                    break
                excess -= rows.nbytes_held
                del _held[rows]
                released.append(rows)
        for rows in released:
            rows._release()

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes_held(self) -> int:
        """Bytes of the memory that these rows keep; of some rows of a tensor it is that of all."""
        tensor = self._tensor
        return 0 if tensor is None else tensor.untyped_storage().nbytes()

    def tensor_on(self, device: str) -> Tensor | None:
        """The rows on the device, not to be written to, for the current stream of this thread.

        None if they had to make room.
        """
        tensor = self._tensor
        if tensor is None:
            return None
        self._await(tensor)
        return tensor.to(device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The rows in their dtype, read once."""
        with self._reading:
            if self._array is None:
                assert self._tensor is not None  # who releases it reads it first
                self._await(self._tensor)
                self._array = _array(self._tensor)
        return np.array(self._array, dtype) if copy else np.asarray(self._array, dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (np.asarray(self),)

    def _await(self, tensor: Tensor) -> None:
        """Have another stream wait until the rows are computed, and the memory stay until it is done."""
        if self._stream is None or (stream := torch.cuda.current_stream(tensor.device)) == self._stream:
            return
        stream.wait_event(self._computed)
        with torch.inference_mode():  # to PyTorch this changes the tensor, which may be of that mode
            tensor.record_stream(stream)

    def _release(self) -> None:
        np.asarray(self)
        self._tensor = None


def _array(tensor: Tensor) -> NDArray[Any]:
    if not tensor.is_cuda:
        return tensor.numpy()
    # In memory of NumPy's, which comes in large pages: of 7 MB each small one took longer than what it holds
    array = np.empty(tensor.shape, torch.empty(0, dtype=tensor.dtype).numpy().dtype)
    torch.from_numpy(array).copy_(tensor)
    return array
