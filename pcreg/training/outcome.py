"""Figures of a step, read during the next one and written for TensorBoard."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import torch
from torch import Tensor

from pcreg.kernels.transfer import Fetched
from pcreg.runtime.errors import InputError
from pcreg.training.losses import Batch


@dataclass(frozen=True)
class Outcome:
    """Loss, its parts, and the norm of the gradient of a step, on their way from the device.

    It holds the batch, so that its memory is not used again before the device has done with it.
    """

    step: int
    batch: Batch
    learning_rate: float
    parts: tuple[str, ...]  # of the loss, `total` among them
    values: Fetched  # (parts + 1,): the parts, and the norm

    @staticmethod
    def of(
        step: int, batch: Batch, learning_rate: float, loss: dict[str, Tensor], gradient: Tensor
    ) -> "Outcome":
        """Begin to fetch the scalars of a step; the device is not waited for."""
        values = torch.stack([*loss.values(), gradient]).detach()
        return Outcome(step, batch, learning_rate, tuple(loss), Fetched(values))

    def read(self) -> dict[str, float]:
        """Wait for the step; InputError if its loss or gradient is not finite."""
        *values, norm = self.values.tolist()
        parts = {f"loss/{part}": value for part, value in zip(self.parts, values, strict=True)}
        for name, value in (("loss", parts["loss/total"]), ("gradient", norm)):
            if not math.isfinite(value):
                raise InputError(
                    f"step {self.step}: the {name} is {value} on {', '.join(self.batch.names)}; "
                    "look at these clouds and their poses, or lower optimizer.lr"
                )
        return parts | {
            "train/gradient_norm": norm,
            "train/learning_rate": self.learning_rate,
            "train/pairs_left_out": len(self.batch.left_out),
        }


class Scalars:
    """Figures for TensorBoard, held until the host has a millisecond to write them."""

    def __init__(self, folder: Path | None, purge_step: int):
        """Void the steps from `purge_step` on in the files of `folder`. None: nothing is written."""
        self._writer = None
        if folder is not None:
            from torch.utils.tensorboard import SummaryWriter  # takes long to import

            self._writer = SummaryWriter(str(folder), purge_step=purge_step)
        self._held: list[tuple[str, float, int]] = []

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write()
        if self._writer is not None:
            self._writer.close()

    def hold(self, scalars: dict[str, float], step: int) -> None:
        self._held += [(name, value, step) for name, value in scalars.items()]

    def write(self) -> None:
        held, self._held = self._held, []
        if self._writer is not None:
            for scalar in held:
                self._writer.add_scalar(*scalar)
