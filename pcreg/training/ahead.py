"""The next batch is made, brought to the GPU and searched, while a step is taken on the one before."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import torch

from pcreg.training.losses import Batch

END = object()  # of the batches


def on_device(
    batches: Iterable[Batch | None],
    device: str,
    stoppable: Callable[[], AbstractContextManager] = nullcontext,
) -> Iterator[Batch | None]:
    """The batches on the device, in their order; None stays None. `stoppable` is around each wait for one.

    On a GPU a thread and a stream of their own make each and bring it there. What a batch holds must be in no
    kernel any more when the next one is asked for: the thread may take its memory again.
    """
    coming = iter(batches)
    if device == "cpu":
        while True:
            with stoppable():
                batch = next(coming, END)
            if batch is END:
                return
            yield batch and batch.to(device)
    stream = torch.cuda.Stream(device, priority=-1)  # of many small kernels, between large ones

    def make() -> tuple[object, torch.cuda.Event]:
        with torch.cuda.stream(stream):
            batch = next(coming, END)
            if batch is not END:
                batch = batch and batch.to(device)
            return batch, stream.record_event()

    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(make)
        while True:
            with stoppable():
                batch, there = following.result()
            if batch is END:
                return
            following = thread.submit(make)
            torch.cuda.current_stream(device).wait_event(there)
            yield batch
