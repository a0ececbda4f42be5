"""Bring the next batch to the GPU during a step, and build its pyramid there."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

import torch

from pcreg.training.losses import Batch

END = object()  # of the batches of an epoch


def stoppable_batches(
    batches: Iterator[Batch | None], stoppable: Callable[[], AbstractContextManager]
) -> Iterator[Batch | None]:
    """Yield the batches; a signal may interrupt the wait for each."""
    while True:
        with stoppable():
            batch = next(batches, END)
        if batch is END:
            return
        yield batch


def on_device(batches: Iterable[Batch | None], device: str) -> Iterator[Batch | None]:
    """Yield the batches on the device, in their order; None stays None.

    On a GPU a thread with a stream of its own brings each one there. Keep a batch until the GPU has done with
    it, as the thread then uses its memory again.
    """
    if device == "cpu":
        for batch in batches:
            yield batch and batch.to(device)
        return
    stream, coming = torch.cuda.Stream(device, priority=-1), None  # of small kernels, between large ones

    def move(batch: Batch | None, made: torch.cuda.Event) -> tuple[Batch | None, torch.cuda.Event]:
        with torch.cuda.stream(stream):
            stream.wait_event(made)
            return batch and batch.to(device), stream.record_event()

    with ThreadPoolExecutor(1) as thread:
        for batch in batches:
            before = coming
            coming = thread.submit(move, batch, torch.cuda.current_stream(device).record_event())
            if before is not None:
                yield _arrived(before, device)
        if coming is not None:
            yield _arrived(coming, device)


def _arrived(coming: "Future[tuple[Batch | None, torch.cuda.Event]]", device: str) -> Batch | None:
    batch, arrival = coming.result()
    torch.cuda.current_stream(device).wait_event(arrival)
    return batch
