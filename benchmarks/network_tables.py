"""The tables that docs/benchmarks/network.md shows of what bench_network.py measures."""

from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import Any

import torch
from pages import RESULTS, save

Rows = list[dict[str, Any]]
PACKAGES = ("torch", "triton", "spconv-cu126", "spconv-triton")


def save_tables(content: dict[str, Rows], command: str) -> None:
    """Write those of the sections in `content` that have one."""
    for section, (name, table) in TABLES.items():
        if section in content:
            save(
                RESULTS / f"{name}.json",
                list(table(content[section])),
                device=torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
                versions=", ".join(_versions()),
                command=command,
                code=["pcreg.models.resunet", "pcreg.kernels.pyramid", "pcreg.kernels.stencil"],
            )


def _versions() -> Iterable[str]:
    for package in PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            continue


def _index(rows: Rows) -> Iterable[dict[str, str]]:
    """A row for each cloud, with the time and the memory of each search."""
    for _, searches in groupby(rows, key=lambda row: row["voxel"]):
        searches = list(searches)
        first = searches[0]
        times = {row["search"]: _text(row["ms"], 2) for row in searches}
        memory = {f"{row['search']}, MiB": _text(row["peak MiB"]) for row in searches}
        yield {"N": f"{first['points']:,}", "T": f"{first['T']:,}", **times, **memory}


def _forward(rows: Rows) -> Iterable[dict[str, str]]:
    for row in rows:
        whole = row["clouds"].startswith("whole")
        times = {name: _text(row[name], 2) for name in ("index", "forward", "both")}
        yield {
            "clouds": f"{row['points']:,}" if whole else row["clouds"],
            "precision": row["precision"],
            "engine": row["engine"],
            **times,
            "peak MiB": _text(row["peak MiB"]),
        }


def _training(rows: Rows) -> Iterable[dict[str, str]]:
    for row in rows:
        step, peak = _text(row["ms"], 1), _text(row["peak MiB"])
        yield {"precision": row["precision"], "engine": row["engine"], "step": step, "peak MiB": peak}


def _text(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


Table = Callable[[Rows], Iterable[dict[str, str]]]
TABLES: dict[str, tuple[str, Table]] = {  # by section: the file in docs/results, and its rows
    "search": ("index", _index),
    "forward": ("forward", _forward),
    "training": ("step", _training),
}
