"""How long a call of `Registrar.register` takes, points in memory: the first of a process, and later ones.

    python benchmarks/bench_pair.py --pair "rooms, 270 k points" a.ply b.ply --pair ... [--device cuda]

With learned descriptors and with FPFH. The first call of all compiles what is not compiled yet and loads
weights; `pcreg warmup` compiles beforehand.
The steps are those of the call whose time is the median. Writes docs/results/pair-DEVICE.json, which
benchmarks/pages.py puts into docs/benchmarks/speed.md.
"""

import os
from collections.abc import Iterator
from itertools import product
from time import perf_counter

import numpy as np
import torch
from pages import RESULTS, save
from report import parser, run

from pcreg.io.cloud import read_cloud
from pcreg.registration.registrar import DESCRIPTORS, Registrar

STEPS = ("describe", "match", "estimate", "refine", "verdict", "mirror_test")


def main() -> None:
    made = parser(__doc__)
    pair = {"nargs": 3, "action": "append", "required": True, "metavar": ("NAME", "SOURCE", "TARGET")}
    made.add_argument("--pair", **pair)
    made.add_argument("--repeat", type=int, default=9)
    made.add_argument("--device", default="cuda")
    options = made.parse_args()
    cores = f"{len(os.sched_getaffinity(0))} cores"
    on_cpu = options.device == "cpu"
    save(
        RESULTS / f"pair-{options.device}.json",
        list(_rows(options.pair, options.repeat, options.device)),
        device=f"CPU, {cores}" if on_cpu else f"{torch.cuda.get_device_name(options.device)}, {cores}",
        versions=f"torch {torch.__version__}, numpy {np.__version__}",
        command=f"python benchmarks/bench_pair.py --pair NAME SOURCE TARGET ... --device {options.device}",
        code=["pcreg.registration.registrar"],
    )


def _rows(pairs: list[list[str]], repeat: int, device: str) -> Iterator[dict[str, str]]:
    registrars = [Registrar(descriptor=descriptor, device=device) for descriptor in DESCRIPTORS]
    for registrar, (name, *files) in product(registrars, pairs):
        clouds = [read_cloud(file).points for file in files]
        calls = []
        for _ in range(1 + repeat):
            start = perf_counter()
            found = registrar.register(*clouds)
            calls.append((perf_counter() - start, found.seconds))
        first, *later = calls
        seconds, steps = sorted(later, key=lambda call: call[0])[repeat // 2]
        row = {"descriptor": registrar.descriptor.upper(), "clouds": name}
        row |= {"answer": "registered" if found.registered else "refused"}
        row |= {"first call, s": f"{first[0]:.2f}", "s": f"{seconds:.2f}"}
        row |= {step.replace("_", " "): f"{steps[step]:.3f}" if step in steps else "" for step in STEPS}
        print(", ".join(f"{key} {value}" for key, value in row.items()))
        yield row


if __name__ == "__main__":
    run(main)
