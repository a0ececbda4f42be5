"""Tensors as the kernels' loads want them."""

from torch import Tensor


def aligned(tensor: Tensor) -> Tensor:
    """The tensor, contiguous and beginning at a multiple of 16 bytes, as all that torch allocates does."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()
