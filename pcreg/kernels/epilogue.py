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
    """relu((x - mean) / sqrt(variance + epsilon) * scale + shift + residual), each part if it is given.

    Raises:
        ValueError: A mean without variance, or a scale without both.
    """

    mean: Tensor | None = None  # (M,), like the next three
    variance: Tensor | None = None  # given with the mean
    scale: Tensor | None = None
    shift: Tensor | None = None
    epsilon: float = 0.0
    residual: Tensor | None = None  # (N_out, M)
    relu: bool = False

    def __post_init__(self):
        if (self.mean is None) != (self.variance is None) or (self.scale is not None and self.mean is None):
            raise ValueError("an epilogue takes mean and variance together, and a scale only with them")

    @staticmethod
    def of_norm(norm: nn.BatchNorm1d, residual: Tensor | None, relu: bool) -> "Epilogue":
        """The epilogue of a batch norm in evaluation mode."""
        return Epilogue(norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps, residual, relu)

    def check(self, n_out: int, M: int) -> None:
        """Raise ValueError unless the epilogue fits a result (n_out, M)."""
        if self.residual is not None and self.residual.shape != (n_out, M):
            raise ValueError(f"the residual is {tuple(self.residual.shape)}; it must be {(n_out, M)}")
        for vector in (self.mean, self.variance, self.scale, self.shift):
            if vector is not None and vector.shape != (M,):
                raise ValueError(f"a vector of the epilogue is {tuple(vector.shape)}; it must be {(M,)}")

    def arguments(self) -> tuple[Tensor | float | None, ...]:
        """Mean, variance, scale, shift, epsilon and residual, as kernels take them."""
        residual = None if self.residual is None else aligned(self.residual)
        return self.mean, self.variance, self.scale, self.shift, self.epsilon, residual

    def apply(self, out: Tensor) -> Tensor:
        """Apply the epilogue in plain PyTorch to out (N_out, M), which may be overwritten, in its dtype."""
        dtype = out.dtype
        if self.mean is not None:
            norm = self.mean, self.variance, self.scale, self.shift
            out = nn.functional.batch_norm(out, *norm, eps=self.epsilon)
        elif self.shift is not None:
            out = out + self.shift
        if self.residual is not None:
            out = out + self.residual
        return (torch.relu_(out) if self.relu else out).to(dtype)


NOTHING = Epilogue()
