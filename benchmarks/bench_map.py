"""How many scans `pcreg map` puts where they belong: shuffled fragments, beside the poses of a benchmark.

    python benchmarks/bench_map.py /data/3dmatch/fragments/* [--together] [--shuffle 1] [--workers 2]

Each folder is a scene of 3DMatch's layout, cloud_bin_N.ply with its pose in cloud_bin_N.info.txt, and is
mapped by itself, or all folders as one. A row for each map, and one for the scans that belong to none.
Placed is a scan within 0.2 m and 5 degrees of its pose, the map laid on the scan by which most are; a pair is
wrong that is more than 0.3 m or 15 degrees off, or of two scenes. Seconds are of the clock, for the whole.
"""

from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from map_scores import rows
from report import Report, parser, run

from pcreg import register_all


def main() -> None:
    made = parser(__doc__)
    made.add_argument("scenes", type=Path, nargs="+")
    made.add_argument("--together", action="store_true", help="the fragments of all scenes at once")
    made.add_argument("--shuffle", type=int, default=1, help="a seed for the order")
    made.add_argument("--workers", type=int, default=2)
    options = made.parse_args()
    report = Report(torch.device("cpu"), None)
    groups = [options.scenes] if options.together else [[scene] for scene in options.scenes]
    for scenes in groups:
        paths = sorted(path for scene in scenes for path in scene.glob("cloud_bin_*.ply"))
        paths = [paths[n] for n in np.random.default_rng(options.shuffle).permutation(len(paths))]
        start = perf_counter()
        found = register_all(paths, workers=options.workers)
        seconds = perf_counter() - start
        report.section(", ".join(scene.name for scene in scenes), rows(found, paths, seconds))


if __name__ == "__main__":
    run(main)
