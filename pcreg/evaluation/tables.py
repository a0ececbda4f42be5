"""Tables of a benchmark: our figures beside those of published.yaml, as Markdown or LaTeX.

With several numbers of samples there is a table per figure with a column per number, as in the papers; with
one number, a table with a column per figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml
from tabulate import tabulate

from pcreg.evaluation import metrics
from pcreg.evaluation.metrics import Figures, Row
from pcreg.evaluation.protocol import Protocol, Setup

LATEX = str.maketrans({each: rf"\{each}" for each in "%_&#${}"})
LATEX |= str.maketrans({"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"})
PUBLISHED_SAMPLES = (5000, 2500, 1000, 500, 250)  # of the lists in published.yaml

Records = Sequence[dict[str, Any]]
Average = Callable[[Sequence[Row], Any], Figures]
# Name of a row, and by number of samples the figures, followed by their spread over seeds if measured
Rows = list[tuple[str, dict[int | None, tuple[Figures, ...]]]]


@dataclass(frozen=True)
class Table:
    """A table with its notes."""

    title: str
    header: list[str]  # names of the columns, the first of which names the rows
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        return "\n\n".join([f"**{self.title}**", self._tabulated("pipe"), *self.notes])

    def latex(self, caption: str) -> str:
        """A table environment for the package booktabs."""
        words = " ".join([f"{self.title}.", caption, *self.notes]).translate(LATEX)
        lines = (r"\begin{table}", r"\centering", rf"\caption{{{words}}}", self._tabulated("latex_booktabs"))
        return "\n".join([*lines, r"\end{table}"]).replace("±", r"$\pm$")

    def _tabulated(self, kind: str) -> str:
        """Header and rows in a table format of the package tabulate."""
        align = ["left", *["right"] * (len(self.header) - 1)]
        return tabulate(self.rows, self.header, kind, colalign=align, disable_numparse=True)


@cache
def published() -> dict[tuple[str, str], dict[str, Any]]:
    """The content of published.yaml, by benchmark and protocol."""
    text = (files("pcreg.evaluation") / "published.yaml").read_text(encoding="utf-8")
    return {(table["benchmark"], table["protocol"]): table for table in yaml.safe_load(text)}


def curve(key: str, value: Any) -> dict[int | None, float]:
    """A published figure, in metres, degrees or as a fraction, by the number of samples; None: all points."""
    if isinstance(value, list):
        value = dict(zip(PUBLISHED_SAMPLES, value, strict=True))
    value = value if isinstance(value, dict) else {None: value}
    scale = 1 if key.startswith(("RTE", "RRE")) else 100  # the file has percent
    return {samples: round(each / scale, 5) for samples, each in value.items()}


def tables(records: Records, setup: Setup) -> list[Table]:
    """All tables but those per scene."""
    several = len(setup.protocol.samples) > 1
    found = _by_samples(records, setup) if several else [_by_figure(records, setup)]
    found += [_errors(records, setup)] if setup.protocol.gates else []
    return found if isinstance(setup.protocol, Protocol) else [*found, _wrongly_accepted(records, setup)]


def measured(
    records: Records, setup: Setup, samples: int | None, average: Average = metrics.overall
) -> tuple[Figures, Figures]:
    """Mean and spread over the seeds of the figures at this number of samples."""
    runs = [metrics.rows(records, samples, seed) for seed in setup.seeds]
    return metrics.over_seeds([average(run, setup.protocol) for run in runs])


def _ours(records: Records, setup: Setup) -> Rows:
    """A row per way of averaging, the protocol's own first."""
    ways = {"all pairs pooled": metrics.figures}
    if len({record["scene"] for record in records}) > 1:
        ways["mean of scenes"] = metrics.over_scenes
    return [
        (
            f"{setup.descriptor} + {setup.estimator}, {way}",
            {n: measured(records, setup, n, ways[way]) for n in setup.protocol.samples},
        )
        for way in sorted(ways, reverse=setup.protocol.scene_mean)
    ]


def _beside(rows: Rows, setup: Setup, keys: Sequence[str]) -> tuple[Rows, list[str]]:
    """Add rows of published figures of these keys to ours; returns also notes on sources and settings."""
    table = published().get((setup.benchmark, setup.protocol.name), {"methods": ()})
    others: Rows = []
    sources: dict[str, int] = {}
    for each in table["methods"]:
        figures: dict[int | None, Figures] = {n: {} for n in setup.protocol.samples}
        for name in set(keys).intersection(each["figures"]):
            for n, figure in curve(name, each["figures"][name]).items():
                if n in figures:
                    figures[n][name] = figure
        if any(figures.values()):
            number = sources.setdefault(each["source"], len(sources) + 1)
            others.append((f"{each['method']} [{number}]", {n: (found,) for n, found in figures.items()}))
    notes = [f"[{number}] {source}" for source, number in sources.items()]
    there = table.get("settings", {})
    here = {name: getattr(setup.protocol, name) for name in there}
    if others and (other := [name for name in there if here[name] != there[name]]):
        words = ", ".join(f"{name} is {there[name]} there and {here[name]} here" for name in other)
        notes.append(f"Published figures are not comparable: {words}.")
    return [*rows, *others], notes


def _by_samples(records: Records, setup: Setup) -> list[Table]:
    ours, samples = _ours(records, setup), setup.protocol.samples
    header = ["N points" if setup.protocol.draw == "points" else "N matches"]
    header += ["all" if n is None else str(n) for n in samples]
    found = []
    for key in _keys(ours[0][1][samples[0]][0], setup):
        shown, notes = _beside(ours, setup, [key])
        rows = [[name, *(cell(key, *figures[n]) for n in samples)] for name, figures in shown]
        found.append(Table(f"{setup.benchmark}: {heading(key)}", header, rows, notes))
    return found


def _by_figure(records: Records, setup: Setup) -> Table:
    (samples,) = setup.protocol.samples
    ours = _ours(records, setup)
    keys = _keys(ours[0][1][samples][0], setup)
    shown, notes = _beside(ours, setup, keys)
    rows = [[name, *(cell(key, *figures[samples]) for key in keys)] for name, figures in shown]
    return Table(setup.benchmark, ["", *map(heading, keys)], rows, notes)


def _errors(records: Records, setup: Setup) -> Table:
    """Mean, deviation and median of RTE and RRE by mask, at the first number of samples."""
    columns = [(error, statistic) for error in ("RTE", "RRE") for statistic in metrics.STATISTICS]
    figures = measured(records, setup, setup.protocol.samples[0], metrics.figures)
    rows = [
        [mask, *(cell(f"{error}_{mask}_{statistic}", *figures) for error, statistic in columns)]
        for mask in metrics.MASKS
    ]
    units = {"RTE": "m", "RRE": "deg"}
    header = ["pairs pooled", *(f"{error} {units[error]} {statistic}" for error, statistic in columns)]
    return Table(f"{setup.benchmark}: errors{_drawn(setup, setup.protocol.samples[0])}", header, rows)


def _wrongly_accepted(records: Records, setup: Setup) -> Table:
    """A row per pair that was accepted and is wrong, the most confident first."""
    scored = [row for seed in setup.seeds for row in metrics.rows(records, None, seed)]
    right = metrics.succeeded(scored, setup.protocol)
    wrong = [row for row, passed in zip(scored, right, strict=True) if row["registered"] and not passed]
    keys = ("confidence", "RTE", "RRE", "rmse", "overlap_measured")
    rows = [
        [row["pair"], str(row["seed"]), *(f"{row[key]:.3f}" for key in keys)]
        for row in sorted(wrong, key=lambda row: -row["confidence"])
    ]
    header = ["pair", "seed", "confidence", "RTE m", "RRE deg", "RMSE m", "overlap"]
    return Table(f"{setup.benchmark}: accepted and wrong, {len(rows)}", header, rows)


def per_scene(records: Records, setup: Setup, samples: int | None) -> Table:
    """A row per scene at this number of samples, mean over the seeds, and the mean and spread of scenes."""
    runs = [metrics.by_scene(metrics.rows(records, samples, s), setup.protocol) for s in setup.seeds]
    scenes = {scene: metrics.over_seeds([run[scene] for run in runs]) for scene in runs[0]}
    keys = _keys(next(iter(scenes.values()))[0], setup, counts=True)
    rows = [[scene, *(cell(key, *figures) for key in keys)] for scene, figures in scenes.items()]
    for place, name in enumerate(("mean of scenes", "std over scenes") if len(scenes) > 1 else ()):
        values = {
            key: metrics.of_scenes([figures[key] for figures, _ in scenes.values()])[place]
            for key in keys
            if key not in metrics.COUNTS
        }
        rows.append([name, *(cell(key, values) for key in keys)])
    title = f"{setup.benchmark} by scene{_drawn(setup, samples)}"
    return Table(title, ["", *map(heading, keys)], rows)


def _drawn(setup: Setup, samples: int | None) -> str:
    """End of a title that states the number of samples; empty for the system, which takes all."""
    if not isinstance(setup.protocol, Protocol):
        return ""
    return f", {'all' if samples is None else samples} {setup.protocol.draw}"


def _keys(figures: Figures, setup: Setup, counts: bool = False) -> list[str]:
    """Keys of figures with a column or a table of their own, the protocol's recall first."""
    gates = setup.protocol.gates
    own = {"information": "RR", "rmse": "RR_rmse", "gate": metrics.gate_key(gates[0]) if gates else ""}
    first = own[setup.protocol.recall]
    keys = [
        key
        for key in figures
        if (counts or key not in metrics.PAIRS)
        and (not key.startswith(("RTE", "RRE")) or key.endswith(("joint_mean", "separate_mean")))
    ]
    return sorted(keys, key=lambda key: (key not in metrics.PAIRS, key != first))


def heading(key: str) -> str:
    """The name of a figure with its unit."""
    name, *rest = key.split("_")
    if key in metrics.COUNTS:
        return key.replace("_", " ")
    if name == "seconds":
        return f"s {' '.join(rest)}"
    if name in ("RTE", "RRE"):
        return f"{name} {'m' if name == 'RTE' else 'deg'} {rest[0]}"
    if name == "RR" and len(rest) == 2:
        return f"RR {rest[0].removesuffix('m')} m / {rest[1].removesuffix('deg')} deg %"
    return f"{' '.join([name, *rest])} %"


def cell(key: str, figures: Figures, spread: Figures | None = None) -> str:
    """A figure as a table prints it, with its spread if it has one."""
    value, deviation = figures.get(key, np.nan), (spread or {}).get(key, np.nan)
    if np.isnan(value):
        return ""
    if key in metrics.COUNTS:
        return f"{round(value, 1):g}"
    scale, digits = (1, 3) if key.startswith(("RTE", "RRE")) else (1, 2) if key.startswith("s") else (100, 1)
    text = f"{scale * value:.{digits}f}"
    return text if np.isnan(deviation) else f"{text} ± {scale * deviation:.{digits}f}"
