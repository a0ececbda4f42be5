"""Norm with fixed statistics, shortcut and relu behind a convolution, for inference.

The kernel of the convolution applies them to its result: no other launch, no other pass over memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pcreg.kernels.transfer import aligned

VECTORS = ["mean", "variance", "scale", "shift"]  # (M,), as arguments of a kernel


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

    def arguments(self) -> tuple[Tensor | float | None, ...]:
        """Mean, variance, scale, shift, epsilon and residual, as kernels take them."""
        residual = None if self.residual is None else aligned(self.residual)
        if self.norm is None:
            return None, None, None, self.bias, 0.0, residual
        mean, variance = self.norm.running_mean, self.norm.running_var
        return mean, variance, self.norm.weight, self.norm.bias, self.norm.eps, residual

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
