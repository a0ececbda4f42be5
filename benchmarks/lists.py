"""Make a table of runs of `pcreg evaluate`, a row per list of pairs and way to average, or by overlap.

    python benchmarks/lists.py --run 3DMatch data=3dmatch --run 3DLoMatch data=3dlomatch
        --settings data.root=/data/3dmatch protocol=system seeds=[0] --columns "RR %" accepted
    python benchmarks/lists.py --by-overlap ...     # a row per range of overlap, over the pairs of all lists

Columns are those of the table that `pcreg evaluate` prints; its published figures are rows, too.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from report import Value, keep, make_parser, run

from pcreg.cli.config import compose_config
from pcreg.cli.evaluate import evaluate

OVERLAPS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 1.0)
MAX_RMSE = 0.2  # metres, of a pair that counts as registered in the table by overlap


def main() -> None:
    parser, _ = make_parser(__doc__)
    parser.add_argument("--run", nargs="+", action="append", required=True, metavar=("NAME", "SETTING"))
    parser.add_argument("--settings", nargs="+", default=[], help="of all runs")
    parser.add_argument("--columns", nargs="+", default=["RR %"], help="(default: %(default)s)")
    parser.add_argument("--by-overlap", action="store_true")
    parser.add_argument("--workers", type=int, default=2, help="(default: %(default)s)")
    options = parser.parse_args()
    keep(by_overlap(options) if options.by_overlap else by_list(options), options, "lists", "cpu")


def by_list(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    for name, tables, _ in runs(options):
        header, rows = tables[0]["header"], tables[0]["rows"]
        for label, *cells in rows:
            found = dict(zip(header[1:], cells, strict=True))
            is_ours = not label.endswith("]")  # the number of a source
            way = label.split(", ")[1] if is_ours else f"{label.rpartition(' ')[0]}, published"
            way = way if len(rows) > 1 else ""
            shown = {column: found.get(column) for column in options.columns}
            if any(shown.values()):
                yield {"list": name, "": way} | shown


def by_overlap(options: argparse.Namespace) -> Iterator[dict[str, Value]]:
    records = {record["pair"]: record for _, _, records in runs(options) for record in records}.values()
    overlap = np.array([record["overlap"] for record in records])
    first = [record["trials"][0] for record in records]
    right = np.array([trial["rmse"] is not None and trial["rmse"] <= MAX_RMSE for trial in first])
    ratio = np.array([trial["IR"] for trial in first])
    for low, high in pairwise(OVERLAPS):
        rows = (low <= overlap) & (overlap < high)
        row = {"overlap": f"{low:.0%} to {high:.0%}", "pairs": int(rows.sum())}
        yield row | {"RR rmse %": 100 * right[rows].mean(), "IR %": 100 * ratio[rows].mean()}


def runs(options: argparse.Namespace) -> Iterator[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Names, tables and records of all runs."""
    for name, *settings in options.run:
        with tempfile.TemporaryDirectory() as folder:
            own = [*options.settings, *settings, f"out={folder}", f"workers={options.workers}"]
            evaluate(compose_config("evaluate", own))
            lines = (Path(folder) / "records.jsonl").read_text().splitlines()
            yield name, json.loads((Path(folder) / "tables.json").read_text()), list(map(json.loads, lines))


if __name__ == "__main__":  # workers import this file
    run(main)
