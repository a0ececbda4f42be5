"""Batches on their way to the GPU during a step, and figures of a step on their way back."""

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import torch
from torch import Tensor

from pcreg.datasets.collate import END, TrainingBatch
from pcreg.runtime.errors import InputError


def on_device(batches: Iterable[TrainingBatch | None], device: str) -> Iterator[TrainingBatch | None]:
    """Yield the batches on the device, in their order; None stays None.

    For a GPU, a thread moves the batches on its own stream. Keep a batch until the GPU has done with it, as
    the thread reuses the memory of a batch that is released.
    """
    if device == "cpu":
        for batch in batches:
            yield batch and batch.to(device)
        return
    stream, coming = torch.cuda.Stream(device, priority=-1), None  # its kernels are small: they go first

    def move(
        batch: TrainingBatch | None, made: torch.cuda.Event
    ) -> tuple[TrainingBatch | None, torch.cuda.Event]:
        with torch.cuda.stream(stream):
            stream.wait_event(made)
            return batch and batch.to(device), stream.record_event()

    with ThreadPoolExecutor(1) as thread:
        for batch in chain(batches, [END]):
            before, made = coming, torch.cuda.current_stream(device).record_event()
            coming = None if batch is END else thread.submit(move, batch, made)
            if before is not None:
                arrived, arrival = before.result()
                torch.cuda.current_stream(device).wait_event(arrival)
                yield arrived


class Outcome:
    """Loss, its parts and gradient norm of a step, while copied from the device.

    Holds the batch, so that the batch's memory is not reused before the device has done with it.
    """

    def __init__(
        self, step: int, batch: TrainingBatch, learning_rate: float, loss: dict[str, Tensor], gradient: Tensor
    ):
        """Begin to copy the scalars of a step, without waiting for the device."""
        self.step, self.batch, self.learning_rate = step, batch, learning_rate
        self.parts = tuple(loss)  # `total` among them
        values = torch.stack([*loss.values(), gradient]).detach()
        self.values = values.to("cpu", non_blocking=True)
        self.arrival = torch.cuda.current_stream(values.device).record_event() if values.is_cuda else None

    def read(self) -> dict[str, float]:
        """Wait for the step; InputError if its loss or gradient is not finite."""
        if self.arrival is not None:
            self.arrival.synchronize()
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
