"""Trials of every kind in turn, in a process of their own, which a fault may take down."""

import argparse
import faulthandler
import io
import os
import random
import resource
import subprocess
import sys
import warnings
from collections import Counter
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

LEAST = {"files": 280, "clouds": 20, "commands": 20, "interruptions": 2}  # trials of each kind
KINDS = tuple(LEAST)
LONGEST = 60  # seconds that a trial may take, on a busy machine
GROWTH = 600  # MB that all of them may take together, beyond what the first of each kind did
ROOT = Path(__file__).resolve().parents[2]


class Fault(AssertionError):
    """A trial that ended otherwise than it may, with the command that repeats it."""


def run(seed: int, seconds: float) -> dict[str, Counter]:
    """How often trials of each kind `answered` and `refused`, so many seconds long, and LEAST at least.

    Raises Fault.
    """
    command = [sys.executable, "-m", __name__, str(seed), str(seconds)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        # A heap for each thread would keep what the largest trial took there, and look like a leak.
        env=os.environ | {"MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        timeout=seconds + 10 * LONGEST,
    )
    counts = {kind: Counter() for kind in KINDS}
    lines = [line.split() for line in done.stdout.splitlines()]
    for kind, _, outcome in (line for line in lines if len(line) == 3):
        counts[kind][outcome] += 1
    if done.returncode:
        kind, number = lines[-1][:2] if lines else (KINDS[0], 0)
        again = f"python -m tests.fuzz --seed {seed} --kind {kind} --number {number}"
        raise Fault(f"{again}\nended with {done.returncode}: {done.stderr[-4000:]}")
    return counts


def once(seed: int, kind: str, number: int) -> str:
    """One trial, always the same for these three."""
    warnings.simplefilter("error", RuntimeWarning)  # NumPy's
    trial = import_module(f"{__package__}.{kind}").trial
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    try:
        with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            return trial(random.Random(f"{seed} {kind} {number}"), Path(folder))
    finally:
        faulthandler.cancel_dump_traceback_later()


def _main(seed: int, seconds: float) -> None:
    """Print kind, number and outcome of each trial; the kind that had least time so far comes next."""
    spent, numbers, most = dict.fromkeys(KINDS, 0.0), Counter(), 0
    start = perf_counter()
    while perf_counter() - start < seconds or any(numbers[kind] < LEAST[kind] for kind in KINDS):
        kind = min(KINDS, key=lambda kind: (numbers[kind] >= LEAST[kind], spent[kind]))
        print(kind, numbers[kind], end=" ", flush=True)
        begun = perf_counter()
        outcome = once(seed, kind, numbers[kind])
        spent[kind] += perf_counter() - begun if kind in numbers else 0  # the first one imports
        numbers[kind] += 1
        print(outcome, flush=True)
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        if len(numbers) < len(KINDS):
            most = size + GROWTH
        assert size < most, f"{size} MB, allowed are {most}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    _main(options.seed, options.seconds)
