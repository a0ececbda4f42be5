"""What a step of a training gave, read when the device has come to it: by then the next step is under way."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pcreg.kernels.transfer import Fetched
from pcreg.runtime.errors import InputError
from pcreg.training.losses import Batch


@dataclass(frozen=True)
class Outcome:
    """Of a step the loss, its parts, and the norm of the gradient.

    It holds the batch, whose memory nothing else may take before the device has done with it.
    """

    step: int
    batch: Batch
    learning_rate: float
    parts: tuple[str, ...]  # of the loss, `total` among them
    values: Fetched  # (parts + 1,): of the parts, and the norm

    @staticmethod
    def of(
        step: int, batch: Batch, learning_rate: float, loss: dict[str, Tensor], gradient: Tensor
    ) -> "Outcome":
        """That of a step whose `loss`, total and parts, and norm of the gradient are scalars on a device.

        The device is not waited for.
        """
        values = torch.stack([*loss.values(), gradient]).detach()
        return Outcome(step, batch, learning_rate, tuple(loss), Fetched(values))

    def read(self) -> dict[str, float]:
        """What TensorBoard shows of the step. Waits for it; InputError if loss or gradient is not finite."""
        *values, norm = self.values.tolist()
        parts = {f"loss/{part}": value for part, value in zip(self.parts, values, strict=True)}
        self._require_finite("loss", parts["loss/total"])
        self._require_finite("gradient", norm)
        return parts | {
            "train/gradient_norm": norm,
            "train/learning_rate": self.learning_rate,
            "train/pairs_left_out": len(self.batch.left_out),
        }

    def _require_finite(self, what: str, value: float) -> None:
        if not math.isfinite(value):
            raise InputError(
                f"step {self.step}: the {what} is {value} on {', '.join(self.batch.names)}; "
                "look at these clouds and their poses, or lower optimizer.lr"
            )
