"""How long `register` takes to refuse fragments of different scenes of 3DMatch.

    python benchmarks/bench_refusals.py /data/3dmatch [--pairs 12]

Writes docs/results/refusals.json; `python benchmarks/pages.py` then puts it into docs/benchmarks/speed.md.
"""

from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from pages import RESULTS, save
from report import parser, run

from pcreg.datasets.threedmatch import ThreeDMatch
from pcreg.registration.registrar import Registrar


def main() -> None:
    made = parser(__doc__)
    made.add_argument("root", type=Path)
    made.add_argument("--pairs", type=int, default=12)
    options = made.parse_args()
    dataset = ThreeDMatch(options.root, "3DMatch")
    scenes = sorted({pair.scene for pair in dataset.pairs})
    names = {scene: sorted({p.source for p in dataset.pairs if p.scene == scene}) for scene in scenes}
    rng, registrar, measured = np.random.default_rng(0), Registrar(), []
    for n in range(options.pairs + 1):  # the first one is a warm-up
        source, target = (str(rng.choice(names[scene])) for scene in rng.permutation(scenes)[:2])
        clouds = [registrar.prepare(dataset.cloud(name), viewpoint="sensor") for name in (source, target)]
        wall, cpu = perf_counter(), process_time()
        found = registrar.register(*clouds)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        print(f"{source} in {target}: {wall:.2f} s, {cpu:.2f} CPU s, confidence {found.confidence:.3f}")
        if n and not found.registered:
            measured.append((sum(len(cloud.points) for cloud in clouds) / 2, wall, cpu))
    size, wall, cpu = np.array(measured).T
    row = {
        "pairs refused": f"{len(measured)} of {options.pairs}",
        "points each, mean": f"{size.mean():,.0f}",
        "s on the clock, mean": f"{wall.mean():.2f}",
        "most": f"{wall.max():.2f}",
        "CPU s, mean": f"{cpu.mean():.2f}",
    }
    save(
        RESULTS / "refusals.json",
        [row],
        device="CPU, 2 cores",
        versions=f"torch {torch.__version__}, numpy {np.__version__}",
        command="python benchmarks/bench_refusals.py /data/3dmatch",
        code=["pcreg.registration.registrar"],
    )


if __name__ == "__main__":
    run(main)
