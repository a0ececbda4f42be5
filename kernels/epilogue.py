"""What follows a convolution in inference: a norm with fixed statistics, the sum with a shortcut, a relu.

Done by the kernel that holds the result anyway, these cost no launch and no further trip to memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kernels.launch import aligned

VECTORS = ["mean", "variance", "scale", "shift"]  # (M,), as arguments of a kernel


@dataclass(frozen=True, eq=False)
class Epilogue:
    """relu((x - mean) / sqrt(variance + epsilon) * scale + shift + residual), each part if it is given."""

    mean: Tensor | None = None  # (M,) float32, like the next three
    variance: Tensor | None = None  # given with the mean
    scale: Tensor | None = None
    shift: Tensor | None = None
    epsilon: float = 0.0
    residual: Tensor | None = None  # (N_out, M), of the dtype of the result
    relu: bool = False

    @staticmethod
    def of_norm(norm: nn.BatchNorm1d, residual: Tensor | None, relu: bool) -> "Epilogue":
        """A batch norm in evaluation mode."""
        return Epilogue(norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps, residual, relu)

    @property
    def kind(self) -> tuple[bool, ...]:
        """What a kernel is compiled for."""
        given = (self.mean, self.scale, self.shift, self.residual)
        return *(tensor is not None for tensor in given), self.relu

    def arguments(self) -> tuple[Tensor | float | None, ...]:
        """The arguments of kernels.finish.finished that follow its columns."""
        residual = None if self.residual is None else aligned(self.residual)
        return self.mean, self.variance, self.scale, self.shift, self.epsilon, residual

    def apply(self, out: Tensor) -> Tensor:
        """The definition, and the CPU's path: on out (N_out, M), which may be overwritten."""
        if self.mean is not None:
            out = nn.functional.batch_norm(
                out, self.mean, self.variance, self.scale, self.shift, eps=self.epsilon
            )
        elif self.shift is not None:
            out = out + self.shift
        if self.residual is not None:
            out = out.add_(self.residual)
        return torch.relu_(out) if self.relu else out


NOTHING = Epilogue()
