"""Rows as they are measured: printed at once, aligned, and kept for a JSON file."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing

Value = str | int | float | None


class Report:
    """Sections of rows; the file is written anew after each row, so that a broken run leaves all before."""

    def __init__(self, device: torch.device, file: Path | None):
        self.content = {"machine": describe_machine(device)}
        self.file = file
        self.facts(self.content["machine"])

    def facts(self, facts: dict[str, Value]) -> None:
        """Print what belongs to all rows that follow."""
        print("\n" + ", ".join(f"{key} {_text(value)}" for key, value in facts.items()), flush=True)

    def section(self, name: str, rows: Iterable[dict[str, Value]]) -> None:
        kept = self.content.setdefault(name, [])
        columns: list[str] = []
        print(f"\n## {name}", flush=True)
        for row in rows:
            if list(row) != columns:
                columns = list(row)
                widths = [max(len(key), len(_text(value)), 7) for key, value in row.items()]
                print("  ".join(f"{key:>{width}}" for key, width in zip(columns, widths, strict=True)))
            cells = zip(row.values(), widths, strict=True)
            print("  ".join(f"{_text(value):>{width}}" for value, width in cells), flush=True)
            kept.append(row)
            self.write()

    def write(self) -> None:
        if self.file:
            with replacing(self.file) as path:
                path.write_text(json.dumps(self.content, indent=1))


def parser(text: str, cloud: bool = False) -> argparse.ArgumentParser:
    """A parser with the docstring of a script as its help, and options for those that measure a `cloud`."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if cloud:
        made.add_argument("cloud", nargs="?", type=Path, metavar="CLOUD")
        made.add_argument("--threads", type=int, default=torch.get_num_threads())
        made.add_argument("--json", type=Path, metavar="FILE")
    return made


def run(main: Callable[[], None]) -> None:
    """Run a benchmark; bad input ends it with one sentence and exit status 2."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def describe_machine(device: torch.device) -> dict[str, str]:
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name = f"CPU with {torch.get_num_threads()} threads"
    machine = {"device": name, "python": platform.python_version()}
    for package in ("torch", "triton"):
        with suppress(PackageNotFoundError):
            machine[package] = version(package)
    return machine


def _text(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value
