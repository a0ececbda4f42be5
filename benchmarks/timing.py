"""Precisions, median times and peak memory, the same way for everything that is compared."""

import statistics
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter

import torch

WARM_UP = 3  # calls of each function before it is timed
PRECISIONS = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@dataclass(frozen=True)
class Wall:
    """Milliseconds of wall-clock time, from the call until the device has finished."""

    median: float
    worst: float  # of inputs seen before
    first: float  # the longest that an input took when it was new: what is compiled anew shows here


def medians(
    functions: Iterable[Callable[[], object]], runs: int, device: torch.device, sleep: float = 2
) -> list[float]:
    """Milliseconds of each function, run in turn so that a drifting machine slows all of them.

    On a GPU, times between events, each behind a `sleep` of about so many milliseconds, which has to be
    longer than it takes to launch the function's kernels: then no launch adds to a time.
    """
    functions = list(functions)
    for function in functions * WARM_UP:
        function()
    if device.type == "cpu":
        times = [[wall_ms(function, device) for function in functions] for _ in range(runs)]
    else:
        torch.cuda.synchronize()
        events = [[_events(function, sleep) for function in functions] for _ in range(runs)]
        torch.cuda.synchronize()
        times = [[start.elapsed_time(end) for start, end in row] for row in events]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def walls(
    functions: dict[str, Callable[[int], object]], n_inputs: int, runs: int, device: torch.device
) -> dict[str, Wall]:
    """Wall-clock times of each function of an input's number, `runs` at least, all in turn.

    Only input 0 is used for the warm-up, so that the others are new when they are timed.
    """
    for function in functions.values():
        for _ in range(WARM_UP if device.type == "cuda" else 1):
            function(0)
    times = {name: [] for name in functions}
    for _ in range(max(2, -(-runs // n_inputs))):
        for n in range(n_inputs):
            for name, function in functions.items():
                times[name].append(wall_ms(lambda function=function, n=n: function(n), device))
    return {
        name: Wall(statistics.median(ms), max(ms[n_inputs:]), max(ms[:n_inputs]))
        for name, ms in times.items()
    }


def wall_ms(function: Callable[[], object], device: torch.device) -> float:
    """Milliseconds of wall-clock time, from the call until the device has finished."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    wait()
    start = perf_counter()
    function()
    wait()
    return 1000 * (perf_counter() - start)


def memory(function: Callable[[], object], device: torch.device) -> tuple[float | None, float | None]:
    """MiB that a call returns, and that it holds at its peak beyond that; None on a CPU."""
    if device.type == "cpu":
        return None, None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function()  # kept alive, so that it is counted in both
    returned = torch.cuda.memory_allocated()
    peak = torch.cuda.max_memory_allocated()
    del result
    return (returned - before) / 2**20, (peak - max(returned, before)) / 2**20


def _events(function: Callable[[], object], sleep: float) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(round(sleep * 2_000_000))  # cycles, about two a nanosecond
    start.record()
    function()
    end.record()
    return start, end


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Half precision as one trains with it: float32 weights, cast for each product."""
    dtype = PRECISIONS[precision]
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)
