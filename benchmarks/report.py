"""Options and results of all benchmarks."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import date
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import torch

from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import write_text

OUT = Path("outputs/benchmarks")
COMMAND = "TABLE_COMMAND"  # environment variable with the command line of benchmarks/tables.sh
PACKAGES = ("numpy", "scipy", "torch", "triton")
Value = str | int | float | None


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


def run(main: Callable[[], int | None]) -> None:
    """Run a benchmark; bad input ends it with one sentence and exit status 2."""
    try:
        sys.exit(main())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def keep(rows: Iterable[dict[str, Value]], options: argparse.Namespace, name: str, device: str) -> None:
    """Print and write rows as they come, so that an interrupted run keeps its rows."""
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
