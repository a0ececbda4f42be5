"""How long `pcreg register` takes from two files to an answer: the whole process, start and picture included.

    python benchmarks/bench_files.py --pair "rooms, 270 k points" a.ply b.ply --pair ... [--repeat 9]

Each pair is registered by the learned descriptors and by FPFH; medians. Writes docs/results/files.json, which
`python benchmarks/pages.py` puts into docs/benchmarks/speed.md.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from pages import RESULTS, save
from report import parser, run

DESCRIPTORS = {"weights": "fcgf", "FPFH": "fpfh"}


def main() -> None:
    made = parser(__doc__)
    pair = {"nargs": 3, "action": "append", "required": True, "metavar": ("NAME", "SOURCE", "TARGET")}
    made.add_argument("--pair", **pair)
    made.add_argument("--repeat", type=int, default=9)
    options = made.parse_args()
    save(
        RESULTS / "files.json",
        list(_rows(options.pair, options.repeat)),
        device=f"CPU, {len(os.sched_getaffinity(0))} cores",
        versions=f"Python {sys.version.split()[0]}, numpy {np.__version__}",
        command="python benchmarks/bench_files.py --pair NAME SOURCE TARGET ...",
        code=["pcreg.registration.registrar", "pcreg.cli.register.pair"],
    )


def _rows(pairs: list[list[str]], repeat: int) -> Iterator[dict[str, str]]:
    for name, source, target in pairs:
        row = {"clouds": name}
        for title, descriptor in DESCRIPTORS.items():
            measured = np.median([_measured(source, target, descriptor) for _ in range(repeat)], axis=0)
            for what, value, digits in zip(("s", "CPU s", "MB"), measured, (1, 1, 0), strict=True):
                row[f"{title}: {what}"] = f"{value:.{digits}f}"
        print(row, flush=True)
        yield row


def _measured(source: str, target: str, descriptor: str) -> tuple[float, float, float]:
    """Seconds on the clock, of the CPU, and megabytes at the peak, of one process."""
    with tempfile.TemporaryDirectory() as out:
        words = ["register", source, target, "--descriptor", descriptor, "--out", out, "--quiet"]
        start = perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "pcreg", *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > 1:
            raise SystemExit(f"{source}, {target}: exit status {process.returncode}")
        return perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


if __name__ == "__main__":
    run(main)
