"""How many pairs a second a batch does: workers started, files read and described, all included.

    python benchmarks/bench_batch.py a.ply b.ply ... [--pairs 200] [--device cuda]

The pairs are the first of all pairs of the files, each file with every later one. With learned descriptors
and with FPFH. Kernels that are not compiled yet are; `pcreg warmup` does that beforehand. Writes
docs/results/batch-DEVICE.json, which benchmarks/pages.py puts into docs/benchmarks/speed.md.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from pages import RESULTS, save
from report import parser, run

from pcreg.registration.registrar import DESCRIPTORS, Registrar
from pcreg.registration.strategy import batch


def main() -> None:
    made = parser(__doc__)
    made.add_argument("files", nargs="+", metavar="FILE")
    made.add_argument("--pairs", type=int, default=200, help="at most")
    made.add_argument("--device", default="cuda")
    options = made.parse_args()
    pairs = [(later, earlier) for earlier, later in islice(combinations(options.files, 2), options.pairs)]
    cores = f"{len(os.sched_getaffinity(0))} cores"
    on_cpu = options.device == "cpu"
    save(
        RESULTS / f"batch-{options.device}.json",
        list(_rows(pairs, options.device)),
        device=f"CPU, {cores}" if on_cpu else f"{torch.cuda.get_device_name(options.device)}, {cores}",
        versions=f"torch {torch.__version__}, numpy {np.__version__}",
        command=f"python benchmarks/bench_batch.py FILE ... --device {options.device}",
        code=["pcreg.registration.strategy.batch"],
    )


def _rows(pairs: Sequence[batch.Pair], device: str) -> Iterator[dict[str, str]]:
    for descriptor in DESCRIPTORS:
        with tempfile.TemporaryDirectory() as folder:
            start = perf_counter()
            records = batch.run(Registrar(descriptor=descriptor, device=device), pairs, Path(folder))
            seconds = perf_counter() - start
        row = {"descriptor": descriptor.upper(), "clouds": str(len(set(sum(pairs, ()))))}
        row |= {"pairs": str(len(pairs)), "registered": str(sum(each["registered"] for each in records))}
        row |= {"s": f"{seconds:.1f}", "pairs a second": f"{len(pairs) / seconds:.1f}"}
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        yield row


if __name__ == "__main__":  # workers import this file
    run(main)
