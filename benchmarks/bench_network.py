"""Time the whole network: index building, pyramid, forward pass, training step, and memory at scale.

    python benchmarks/bench_network.py [CLOUD] [--voxel 0.025 ...] [--only SECTION ...] [--json FILE]

CLOUD is any point cloud file, thinned to one point per voxel (default: a simulated room). Runs on the
GPU if there is one; on a CPU in float32 on smaller clouds. Everything is compared with the same network
on voxels (`snap=True`) and, on a GPU, with one of spconv's layers on the same voxels, if it is installed.

    index      one search of the whole cloud         index_building.py
    pyramid  every sampling and search             index_building.py
    forward    the network, with and without it      inference.py
    training   a step on a batch of pairs            training.py
    split      where the time goes                   time_split.py
    scale      memory and time up to what fits       memory_scale.py; drawn by --plot FILE

Times are wall-clock milliseconds until the device has finished, medians over batches of different
sizes: `worst` is the longest of sizes seen before, `first` the longest of a size that was new.
"""

import argparse
from functools import lru_cache, partial
from pathlib import Path

import torch
from index_building import pyramids, searches
from inference import forwards
from memory_plot import plot
from memory_scale import MODELS, scales
from probe import working_kernels
from report import Report
from time_split import splits
from training import steps
from workload import PRECISIONS, describe_machine, load, run

from pcreg.runtime.device import choose_device

SECTIONS = {
    "index": searches,
    "pyramid": pyramids,
    "forward": forwards,
    "training": steps,
    "split": splits,
    "scale": scales,
}
DEFAULTS = {
    "cuda": {
        "voxel": [0.025],
        "fragment": 20_000,
        "batch": 8,
        "pairs": 4,
        "sizes": 5,
        "precision": list(PRECISIONS),
        "runs": 20,
        "least": 1e5,
        "most": 1e9,
    },
    "cpu": {
        "voxel": [0.05],
        "fragment": 3000,
        "batch": 2,
        "pairs": 2,
        "sizes": 3,
        "precision": ["float32"],
        "runs": 3,
        "least": 1e4,
        "most": 1e4,
    },
}


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    machine = describe_machine(options.device)
    print(", ".join(f"{key} {value}" for key, value in machine.items()) + f", {options.runs} runs")
    options.spconv_kernels = working_kernels(options)
    report = Report(machine, options.json)
    try:
        for name in options.only:
            report.section(name, SECTIONS[name](options))
    finally:  # a device that gives up at its largest cloud leaves the smaller ones to draw
        if options.plot and report.content.get("scale"):
            plot(report.content["scale"], options.plot)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    device = torch.device(choose_device("auto"))
    parser.set_defaults(**DEFAULTS[device.type])
    parser.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
    parser.add_argument("--voxel", type=float, nargs="+", help="metres; the first is the network's")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--fragment", type=int, help="points of one (default: %(default)s)")
    parser.add_argument("--batch", type=int, help="fragments at once (default: %(default)s)")
    parser.add_argument("--sizes", type=int, help="batches of different sizes (default: %(default)s)")
    parser.add_argument("--pairs", type=int, help="of a training step (default: %(default)s)")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, help="of the forward pass")
    parser.add_argument("--spconv-down", type=int, nargs="*", choices=(2, 3), default=[3, 2], metavar="2|3",
                        help="kernels of its strided convolutions; none: leave spconv out")  # fmt: skip
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="to scale")
    parser.add_argument("--least", type=float, help="points to scale from (default: %(default)g)")
    parser.add_argument("--most", type=float, help="points to scale to (default: %(default)g)")
    parser.add_argument("--runs", type=int, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="of the section scale")
    options = parser.parse_args()
    options.device = device
    options.load = lru_cache(partial(load, options.cloud, device=device))
    return options


if __name__ == "__main__":
    run(main)
