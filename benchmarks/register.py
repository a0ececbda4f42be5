"""Time registration: files, pairs in memory, refusals and batches.

python benchmarks/register.py files --pair "rooms, 270 k points" a.ply b.ply --pair ... [--repeat 9]
python benchmarks/register.py pairs --pair NAME SOURCE TARGET ... [--device cuda]
python benchmarks/register.py first --pair NAME SOURCE TARGET ...
python benchmarks/register.py refusals /data/3dmatch [--pairs 12]
python benchmarks/register.py batch a.ply b.ply ... [--pairs 200] [--device cuda]

files     the whole process of `pcreg register`, start and picture included; medians
pairs     a call of `Registrar.register` on points in memory: the first of the process, and the median of
          later calls with its steps
first     the first call on a GPU in a fresh process, which compiles all kernels or finds them on disk
refusals  fragments of different scenes of 3DMatch, prepared beforehand except for scale and description
batch     the first --pairs of all pairs of the files: starting workers, reading, describing, registering
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, combinations, islice, product
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from report import Value, keep, make_parser, run

from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.io.cloud import read_cloud
from pcreg.registration.batch import run as register_pairs
from pcreg.registration.registrar import Registrar
from pcreg.registration.strategy.scales import DESCRIPTORS

STEPS = ("describe", "match", "estimate", "refine", "verdict", "mirror_test")
FIRST_CALL = """
import json, sys
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
    parser, verbs = make_parser(__doc__, *VERBS)
    for verb in ("files", "pairs", "first"):
        pair = {"nargs": 3, "action": "append", "required": True, "metavar": ("NAME", "SOURCE", "TARGET")}
        verbs[verb].add_argument("--pair", **pair)
    verbs["batch"].add_argument("files", nargs="+", metavar="FILE")
    verbs["refusals"].add_argument("root", type=Path, help="3DMatch, as docs/data.md lays it out")
    for verb, count in (("refusals", 12), ("batch", 200)):
        verbs[verb].add_argument("--pairs", type=int, default=count, help="(default: %(default)s)")
    for verb in ("files", "pairs"):
        verbs[verb].add_argument("--repeat", type=int, default=9)
    for verb in ("pairs", "batch"):
        verbs[verb].add_argument("--device", default="cuda")
    options = parser.parse_args()
    device = getattr(options, "device", "cuda" if options.verb == "first" else "cpu")
    keep(VERBS[options.verb](options), options, options.verb, device)


def files(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for name, source, target in options.pair:
        row: dict[str, Value] = {"clouds": name}
        for title, descriptor in (("weights", "fcgf"), ("FPFH", "fpfh")):
            measured = [_process(source, target, descriptor) for _ in range(options.repeat)]
            seconds, cpu, mb = np.median(measured, axis=0)
            row |= {f"{title}: s": seconds, f"{title}: CPU s": cpu, f"{title}: MB": round(mb)}
        yield row


def _process(source: str, target: str, descriptor: str) -> tuple[float, float, float]:
    """Seconds on the clock and of the CPU, and megabytes at the peak, of one process."""
    with tempfile.TemporaryDirectory() as out:
        words = ["register", source, target, "--descriptor", descriptor, "--out", out, "--quiet"]
        start = perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "pcreg", *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode > 1:
            raise SystemExit(f"{source}, {target}: exit status {process.returncode}")
        return perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def pairs(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    registrars = [Registrar(descriptor=each, device=options.device) for each in _descriptors(options.device)]
    for registrar, (name, *paths) in product(registrars, options.pair):
        clouds = [read_cloud(path).points for path in paths]
        calls = []
        for _ in range(1 + options.repeat):
            start = perf_counter()
            found = registrar.register(*clouds)
            calls.append((perf_counter() - start, found.seconds))
        first, *later = calls
        seconds, steps = sorted(later, key=lambda call: call[0])[options.repeat // 2]
        yield {
            "descriptor": registrar.descriptor.upper(),
            "clouds": name,
            "answer": "registered" if found.registered else "refused",
            "first call, s": first[0],
            "s": seconds,
            **{step.replace("_", " "): steps.get(step) for step in STEPS},
        }


def first(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for name, *paths in options.pair:
        with tempfile.TemporaryDirectory() as cache:
            for kernels in ("compiled", "on disk"):
                command = [sys.executable, "-c", FIRST_CALL, *paths]
                environment = os.environ | {"TRITON_CACHE_DIR": cache}
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                imports, call = json.loads(done.stdout)
                row = {"clouds": name, "kernels": kernels}
                yield row | {"importing PyTorch, s": imports, "first call, s": call}


def refusals(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    dataset = ThreeDMatch(options.root, "3DMatch")
    scenes = sorted({pair.scene for pair in dataset.pairs})
    names = {scene: sorted({p.source for p in dataset.pairs if p.scene == scene}) for scene in scenes}
    for viewpoint in ("sensor", "auto"):
        rng, registrar, measured = np.random.default_rng(0), Registrar(), []
        for n in range(options.pairs + 1):  # the first one is a warm-up
            pair = (str(rng.choice(names[scene])) for scene in rng.permutation(scenes)[:2])
            clouds = [registrar.prepare(dataset.cloud(name), viewpoint=viewpoint) for name in pair]
            wall, cpu = perf_counter(), process_time()
            found = registrar.register(*clouds)
            if n and not found.registered:
                measured.append((perf_counter() - wall, process_time() - cpu))
        wall, cpu = np.array(measured).T
        yield {
            "viewpoints": {"sensor": "stated", "auto": "estimated"}[viewpoint],
            "pairs refused": f"{len(measured)} of {options.pairs}",
            "s on the clock, mean": wall.mean(),
            "most": wall.max(),
            "CPU s, mean": cpu.mean(),
        }


def batch(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    chosen = [(b, a) for a, b in islice(combinations(options.files, 2), options.pairs)]
    for descriptor in _descriptors(options.device):
        registrar = Registrar(descriptor=descriptor, device=options.device)
        with tempfile.TemporaryDirectory() as folder:
            start = perf_counter()
            records = register_pairs(registrar, chosen, Path(folder))
            seconds = perf_counter() - start
        yield {
            "descriptor": descriptor.upper(),
            "clouds": len(set(chain(*chosen))),
            "pairs": len(chosen),
            "registered": sum(each["registered"] for each in records),
            "s": seconds,
            "pairs a second": len(chosen) / seconds,
        }


def _descriptors(device: str) -> tuple[str, ...]:
    return DESCRIPTORS if device == "cpu" else DESCRIPTORS[:1]  # FPFH is computed on the CPU


VERBS = {each.__name__: each for each in (files, pairs, first, refusals, batch)}

if __name__ == "__main__":  # workers import this file
    run(main)
