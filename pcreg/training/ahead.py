"""The next batch is brought to the GPU, and its pyramid built, while a step is taken on the one before."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

import torch

from pcreg.training.losses import Batch

END = object()  # of the batches of an epoch


def stoppable_batches(
    batches: Iterator[Batch | None], stoppable: Callable[[], AbstractContextManager]
) -> Iterator[Batch | None]:
    """The batches; a signal may interrupt the wait for each."""
    while True:
        with stoppable():
            batch = next(batches, END)
        if batch is END:
            return
        yield batch


def on_device(batches: Iterable[Batch | None], device: str) -> Iterator[Batch | None]:
    """The batches on the device, in their order; None stays None.

    On a GPU a thread and a stream of their own bring each one there. Who takes a batch keeps it until the
    GPU has done with it: then the thread may take its memory again.
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
    batch, there = coming.result()
    torch.cuda.current_stream(device).wait_event(there)
    return batch
