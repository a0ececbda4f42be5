"""Norm with fixed statistics, shortcut and relu after a convolution, for inference.

On a GPU the kernel that writes the result of the convolution applies them, without another launch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Epilogue:
    """relu(norm(x) + residual), or relu(x + bias + residual), each part if it is given."""

    norm: nn.BatchNorm1d | None = None  # of M channels, in evaluation mode
    bias: Tensor | None = None  # (M,), where there is no norm
    residual: Tensor | None = None  # (N_out, M)
    relu: bool = False

    def check(self, n_out: int, M: int) -> None:
        """Raise ValueError unless the epilogue fits a result (n_out, M)."""
        if self.residual is not None and self.residual.shape != (n_out, M):
            raise ValueError(f"the residual is {tuple(self.residual.shape)}; it must be {(n_out, M)}")
        vector = self.bias if self.norm is None else self.norm.running_mean
        if vector is not None and vector.shape != (M,):
            raise ValueError(f"a vector of the epilogue is {tuple(vector.shape)}; it must be {(M,)}")

    def apply(self, out: Tensor) -> Tensor:
        """Apply the epilogue in plain PyTorch to out (N_out, M), which may be overwritten, in its dtype."""
        dtype = out.dtype
        if self.norm is not None:
            out = self.norm(out)
        elif self.bias is not None:
            out = out + self.bias
        if self.residual is not None:
            out = out + self.residual
        return (torch.relu_(out) if self.relu else out).to(dtype)


NOTHING = Epilogue()
