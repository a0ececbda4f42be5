"""Rows as they are measured: printed at once, aligned, and kept for a JSON file."""

import json
from collections.abc import Iterable
from pathlib import Path

from pcreg.runtime.files import replacing

Value = str | int | float | None


class Report:
    """Sections of rows; the file is written anew after each row, so that a broken run leaves all before."""

    def __init__(self, machine: dict[str, str], file: Path | None):
        self.content = {"machine": machine}
        self.file = file

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


def _text(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value
