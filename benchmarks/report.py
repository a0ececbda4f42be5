"""Options, clouds, times, memory and results of all benchmarks."""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import date
from importlib.metadata import distributions
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import read_cloud
from pcreg.kernels.point_batch import PointBatch
from pcreg.runtime import parallel
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import write_text

OUT = Path("outputs/benchmarks")
COMMAND = "TABLE_COMMAND"  # environment variable with the command line of benchmarks/tables.sh
DEVICE = choose_device("auto")
PACKAGES = ("numpy", "scipy", "torch", "triton")
Value = str | int | float | None
WARM_UP = 3  # calls of each function before it is timed
SLEEP_MS = 20  # longer than the launch of a forward pass


def make_parser(text: str, *verbs: str) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """A parser with the docstring of a script as its help, those of its verbs, and --out."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    added = parser.add_subparsers(dest="verb", required=True) if verbs else None
    choices = {verb: added.add_parser(verb) for verb in verbs}
    for each in choices.values() or [parser]:
        each.add_argument(
            "--out", type=Path, metavar="FILE", help=f"the table, as JSON (default: {OUT}/NAME.json)"
        )
    return parser, choices


def parsed(parser: argparse.ArgumentParser, **defaults: object) -> argparse.Namespace:
    """The options of a parser and those on the cloud, with their defaults, and on the device."""
    parser.add_argument("cloud", nargs="?", metavar="CLOUD")
    parser.add_argument("--voxel", type=float, nargs="+", help="metres (default: %(default)s)")
    parser.add_argument("--runs", type=int, help="default: %(default)s")
    parser.set_defaults(device=DEVICE, **defaults)
    return parser.parse_args()


def run(main: Callable[[], int | None]) -> None:
    """Run a benchmark; bad input ends it with one sentence and exit status 2."""
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def keep(rows: Iterable[dict[str, Value]], options: argparse.Namespace, name: str, device: str) -> None:
    """Print rows as they come; the file holds all so far, so that a broken run loses none."""
    path = options.out or OUT / f"{name}.json"
    command = shlex.join(Path(word).name if Path(word).exists() else word for word in sys.argv[1:])
    processor = "CPU" if device == "cpu" else torch.cuda.get_device_name(device)
    measured = {
        "commit": _commit(),
        "date": date.today().isoformat(),
        "device": f"{processor}, {parallel.cores()} cores",
        "versions": ", ".join(f"{d.name} {d.version}" for d in distributions() if d.name in PACKAGES),
        "command": os.environ.get(COMMAND) or f"python benchmarks/{Path(sys.argv[0]).name} {command}".strip(),
    }
    kept: list[dict[str, Value]] = []
    for row in rows:
        kept.append(row)
        print(", ".join(f"{key} {_text(value)}" for key, value in row.items()), flush=True)
        columns = list(dict.fromkeys(key for each in kept for key in each if _text(each[key])))
        cells = [[_text(each.get(key)) for key in columns] for each in kept]
        result = {"measured": measured, "columns": columns, "rows": cells}
        write_text(path, json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    if not kept:
        raise InputError(f"{path}: not written, as there is nothing to measure; name clouds or pairs")
    print(path)


def keep_table() -> None:
    """Keep the Markdown table of standard input: `report.py --out FILE`."""
    options = make_parser("Keep the Markdown table of standard input.")[0].parse_args()
    header, _, *lines = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in sys.stdin)
    keep((dict(zip(header, line, strict=True)) for line in lines), options, "table", "cpu")


def load(path: Path | None, voxel: float, device: str) -> PointBatch:
    """The cloud in `path`, by default a simulated scan of a room, one point per voxel."""
    if path is None:
        from pcreg.datasets.simulated.indoor import record_scans

        points = record_scans(seed=0, index=0).clouds[0].double().numpy()
    else:
        points = read_cloud(path).points
    return PointBatch.from_clouds([points[voxel_downsample(points, voxel)]]).to(device)


def medians(
    functions: dict[str, Callable[[], object]], runs: int, device: str, launched: bool = False
) -> dict[str, float]:
    """Median wall-clock milliseconds of functions, called in turn.

    If `launched`, times between events on a GPU, without the launches.
    """
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None

    def wall_ms(function: Callable[[], object]) -> float:
        wait()
        start = perf_counter()
        function()
        wait()
        return 1000 * (perf_counter() - start)

    for function in [*functions.values()] * (WARM_UP if device != "cpu" else 1):
        function()
    if device == "cpu" or not launched:
        times = [[wall_ms(each) for each in functions.values()] for _ in range(runs)]
    else:
        wait()
        events = [[_events(each) for each in functions.values()] for _ in range(runs)]
        wait()
        times = [[start.elapsed_time(end) for start, end in row] for row in events]
    return dict(zip(functions, map(statistics.median, zip(*times, strict=True)), strict=True))


def peak_mib(function: Callable[[], object], device: str) -> float | None:
    """MiB that a call holds at its peak beyond what it returns; None on a CPU."""
    if device == "cpu":
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = function()
    returned, peak = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    del result
    return (peak - returned) / 2**20


def _events(function: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_MS * 2_000_000)  # cycles: the launches end before the first kernel starts
    start.record()
    function()
    end.record()
    return start, end


def _commit() -> str | None:
    """The commit of this checkout; None outside one, or without git."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _text(value: Value | np.generic) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


if __name__ == "__main__":
    run(keep_table)
