"""Median times and peak memory, the same way for everything that is compared."""

import statistics
from collections.abc import Callable, Iterable
from time import perf_counter

import torch

WARM_UP = 3


def medians(functions: Iterable[Callable[[], object]], runs: int, device: torch.device) -> list[float]:
    """Milliseconds of each function, run in turn so that a drifting machine slows all of them.

    On a GPU, times between events, each behind a short sleep so that no launch is waited for.
    """
    functions = list(functions)
    for function in functions * WARM_UP:
        function()
    if device.type == "cpu":
        times = [[_cpu_ms(function) for function in functions] for _ in range(runs)]
    else:
        torch.cuda.synchronize()
        events = [[_events(function) for function in functions] for _ in range(runs)]
        torch.cuda.synchronize()
        times = [[start.elapsed_time(end) for start, end in row] for row in events]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def extra_memory(function: Callable[[], object], device: torch.device) -> float | None:
    """MiB that a call holds at its peak beyond what it returns; None on a CPU, which does not tell."""
    if device.type == "cpu":
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function()  # kept alive, so that it is counted in both
    returned = torch.cuda.memory_allocated()
    peak = torch.cuda.max_memory_allocated()
    del result
    return (peak - max(returned, before)) / 2**20


def _cpu_ms(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return 1000 * (perf_counter() - start)


def _events(function: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(4_000_000)  # about 2 ms, longer than it takes to launch the function's kernels
    start.record()
    function()
    end.record()
    return start, end
