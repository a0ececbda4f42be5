"""How long the first `Registrar.register` of a process takes on a GPU, points in memory.

    python benchmarks/bench_first_call.py --pair "rooms, 270 k points" a.ply b.ply --pair ...

Each pair in two fresh processes: one that has to compile all kernels, and one that finds them on disk. Each
imports PyTorch before it is timed. Writes docs/results/first-call.json, which benchmarks/pages.py puts into
docs/benchmarks/speed.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import torch
from pages import RESULTS, save
from report import parser, run

CALL = """
import json
import sys
from time import perf_counter

start = perf_counter()
import torch
from pcreg.io.cloud import read_cloud
from pcreg.registration.registrar import Registrar

imported = perf_counter()
clouds = [read_cloud(file).points for file in sys.argv[1:]]
read = perf_counter()
Registrar(device="cuda").register(*clouds)
print(json.dumps([imported - start, perf_counter() - read]))
"""


def main() -> None:
    made = parser(__doc__)
    pair = {"nargs": 3, "action": "append", "required": True, "metavar": ("NAME", "SOURCE", "TARGET")}
    made.add_argument("--pair", **pair)
    options = made.parse_args()
    save(
        RESULTS / "first-call.json",
        list(_rows(options.pair)),
        device=f"{torch.cuda.get_device_name()}, {len(os.sched_getaffinity(0))} cores",
        versions=f"torch {torch.__version__}",
        command="python benchmarks/bench_first_call.py --pair NAME SOURCE TARGET ...",
        code=["pcreg.registration.registrar"],
    )


def _rows(pairs: list[list[str]]) -> Iterator[dict[str, str]]:
    for name, *files in pairs:
        with tempfile.TemporaryDirectory() as cache:
            for kernels in ("compiled", "on disk"):
                command = [sys.executable, "-c", CALL, *files]
                environment = os.environ | {"TRITON_CACHE_DIR": cache}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                imports, call = json.loads(done.stdout)
                row = {"clouds": name, "kernels": kernels}
                row |= {"importing PyTorch, s": f"{imports:.1f}", "first call, s": f"{call:.1f}"}
                print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
                yield row


if __name__ == "__main__":
    run(main)
