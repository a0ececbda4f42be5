"""Tables of a benchmark: our figures beside published ones, as text, Markdown or LaTeX.

Where several numbers of samples were measured there is a table per figure, with a column per number,
as in the papers; where there is one, a table with a column per figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tabulate import tabulate

from pcreg.evaluation import aggregate, metrics
from pcreg.evaluation.aggregate import Figures, Row
from pcreg.evaluation.caption import Setup
from pcreg.evaluation.protocol import Protocol
from pcreg.evaluation.published import PUBLISHED, Published

LATEX = str.maketrans({"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "~": r"\textasciitilde{}"})


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]  # of the columns, the first being the name of a row
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        return "\n\n".join([f"**{self.title}**", self._as("pipe"), *self.notes])

    def latex(self, caption: str) -> str:
        """A table environment for the package booktabs."""
        words = " ".join([f"{self.title}.", caption, *self.notes]).translate(LATEX)
        lines = (r"\begin{table}", r"\centering", rf"\caption{{{words}}}", self._as("latex_booktabs"))
        return "\n".join([*lines, r"\end{table}"]).replace("±", r"$\pm$")

    def _as(self, kind: str) -> str:
        """The header and the rows in a format of tabulate's."""
        align = ["left", *["right"] * (len(self.header) - 1)]
        return tabulate(self.rows, self.header, kind, colalign=align, disable_numparse=True)


def tables(records: Sequence[dict[str, Any]], setup: Setup) -> list[Table]:
    """All tables but those per scene."""
    several = len(setup.protocol.samples) > 1
    found = _by_samples(records, setup) if several else [_by_figure(records, setup)]
    found += [_errors(records, setup)] if setup.protocol.gates else []
    has_verdicts = all("registered" in trial for record in records for trial in record["trials"])
    return [*found, _wrongly_accepted(records, setup)] if has_verdicts else found


def _averages(setup: Setup) -> dict[str, Callable[[Sequence[Row], Any], Figures]]:
    """The two ways of averaging, the protocol's own first."""
    ways = {"mean of scenes": aggregate.over_scenes, "all pairs pooled": aggregate.figures}
    return ways if setup.protocol.scene_mean else dict(reversed(ways.items()))


def measured(
    records: Sequence[dict[str, Any]],
    setup: Setup,
    samples: int | None,
    average: Callable[[Sequence[Row], Any], Figures] = aggregate.overall,
    compat: bool = False,
) -> tuple[Figures, Figures]:
    """Mean and spread over the seeds of the figures at this number of samples."""
    runs = [aggregate.rows(records, samples, seed, compat) for seed in setup.seeds]
    return aggregate.over_seeds([average(run, setup.protocol) for run in runs])


def _ours(records: Sequence[dict[str, Any]], setup: Setup) -> list[tuple[str, dict[int | None, tuple]]]:
    """Rows of our figures by number of samples: one per way of averaging and truth."""
    several = len({record["scene"] for record in records}) > 1
    truths = {"": False} | ({", FCGF-order ground truth": True} if has_compat(records) else {})
    return [
        (
            f"{setup.descriptor} + {setup.estimator}, {way}{truth}",
            {n: measured(records, setup, n, average, compat) for n in setup.protocol.samples},
        )
        for truth, compat in truths.items()
        for way, average in _averages(setup).items()
        if several or average is aggregate.figures
    ]


def has_compat(records: Sequence[dict[str, Any]]) -> bool:
    """Whether errors were also taken against the truth of older tables."""
    return all("compat" in trial for record in records for trial in record["trials"])


def _by_samples(records: Sequence[dict[str, Any]], setup: Setup) -> list[Table]:
    ours = _ours(records, setup)
    samples = setup.protocol.samples
    published = PUBLISHED.get((setup.benchmark, setup.protocol.name), ())
    found = []
    for key in _keys(ours[0][1][samples[0]][0], setup):
        rows = [[name, *(cell(key, *figures[n]) for n in samples)] for name, figures in ours]
        beside = [entry for entry in published if key in entry.figures]
        notes = _notes(beside)
        for entry in beside:
            curve = {n: {key: value} for n, value in entry.figures[key].items()}
            rows.append([_cited(entry, notes), *(cell(key, curve.get(n, {})) for n in samples)])
        header = [f"N {'points' if setup.protocol.draw == 'points' else 'matches'}"]
        header += ["all" if n is None else str(n) for n in samples]
        title = f"{setup.benchmark}: {heading(key)}"
        found.append(Table(title, header, rows, [f"[{n}] {source}" for source, n in notes.items()]))
    return found


def _notes(entries: Sequence[Published]) -> dict[str, int]:
    """The sources, numbered."""
    return {source: n for n, source in enumerate(dict.fromkeys(e.source for e in entries), start=1)}


def _cited(entry: Published, notes: dict[str, int]) -> str:
    return f"{entry.method} [{notes[entry.source]}]"


def _by_figure(records: Sequence[dict[str, Any]], setup: Setup) -> Table:
    (samples,) = setup.protocol.samples
    ours = [(name, figures[samples]) for name, figures in _ours(records, setup)]
    keys = _keys(ours[0][1][0], setup)
    rows = [[name, *(cell(key, *figures) for key in keys)] for name, figures in ours]
    beside = PUBLISHED.get((setup.benchmark, setup.protocol.name), ())
    notes = _notes(beside)
    for entry in beside:
        figures = {key: curve[samples] for key, curve in entry.figures.items() if samples in curve}
        rows.append([_cited(entry, notes), *(cell(key, figures) for key in keys)])
    sources = [f"[{n}] {source}" for source, n in notes.items()]
    return Table(setup.benchmark, ["", *map(heading, keys)], rows, sources)


def _errors(records: Sequence[dict[str, Any]], setup: Setup) -> Table:
    """Mean, deviation and median of RTE and RRE by mask and truth, at the largest number of samples."""
    samples = setup.protocol.samples[0]
    truths = {"truth": False} | ({"FCGF-order ground truth": True} if has_compat(records) else {})
    columns = [(error, statistic) for error in ("RTE", "RRE") for statistic in aggregate.STATISTICS]
    rows = []
    for truth, compat in truths.items():
        figures = measured(records, setup, samples, aggregate.figures, compat)
        for mask in aggregate.MASKS:
            cells = (cell(f"{error}_{mask}_{statistic}", *figures) for error, statistic in columns)
            rows.append([f"{truth}, {mask}", *cells])
    units = {"RTE": "m", "RRE": "deg"}
    header = ["pairs pooled", *(f"{error} {units[error]} {statistic}" for error, statistic in columns)]
    return Table(f"{setup.benchmark}: errors", header, rows)


def _wrongly_accepted(records: Sequence[dict[str, Any]], setup: Setup) -> Table:
    """A row per pair that was accepted and is wrong, the most confident first."""
    scored = [row for seed in setup.seeds for row in aggregate.rows(records, None, seed)]
    right = aggregate.succeeded(scored, setup.protocol)
    wrong = [row for row, passed in zip(scored, right, strict=True) if row["registered"] and not passed]
    rows = [
        [
            row["pair"],
            str(row["seed"]),
            *(f"{row[key]:.3f}" for key in ("confidence", "RTE", "RRE", "rmse", "overlap_measured")),
        ]
        for row in sorted(wrong, key=lambda row: -row["confidence"])
    ]
    header = ["pair", "seed", "confidence", "RTE m", "RRE deg", "RMSE m", "overlap"]
    return Table(f"{setup.benchmark}: accepted and wrong, {len(rows)}", header, rows)


def per_scene(records: Sequence[dict[str, Any]], setup: Setup, samples: int | None) -> Table:
    """A row per scene at this number of samples, mean over the seeds, and the mean and spread of scenes."""
    runs = [aggregate.by_scene(aggregate.rows(records, samples, s), setup.protocol) for s in setup.seeds]
    scenes = {scene: aggregate.over_seeds([run[scene] for run in runs]) for scene in runs[0]}
    keys = _keys(next(iter(scenes.values()))[0], setup, counts=True)
    rows = [[scene, *(cell(key, *figures) for key in keys)] for scene, figures in scenes.items()]
    if len(scenes) > 1:
        for name, statistic in (("mean of scenes", 0), ("std over scenes", 1)):
            values = {
                key: metrics.over_scenes([figures[key] for figures, _ in scenes.values()])[statistic]
                for key in keys
                if key not in aggregate.COUNTS
            }
            rows.append([name, *(cell(key, values) for key in keys)])
    title = f"{setup.benchmark} by scene"
    if isinstance(setup.protocol, Protocol):
        title += f", {'all' if samples is None else samples} {setup.protocol.draw}"
    return Table(title, ["", *map(heading, keys)], rows)


def _keys(figures: Figures, setup: Setup, counts: bool = False) -> list[str]:
    """What has a column or a table, the protocol's own recall first; the errors table has the rest."""
    gates = setup.protocol.gates
    own = {"information": "RR", "rmse": "RR_rmse", "gate": aggregate.gate_key(gates[0]) if gates else ""}
    first = own[setup.protocol.recall]
    keys = [key for key in figures if key not in aggregate.PAIRS or counts]
    keys = [key for key in keys if not key.startswith(("RTE", "RRE")) or _is_mean(key)]
    return sorted(keys, key=lambda key: (key not in aggregate.PAIRS, key != first))


def _is_mean(key: str) -> bool:
    return key.endswith(("joint_mean", "separate_mean"))


def heading(key: str) -> str:
    """The name of a figure with its unit."""
    name, *rest = key.split("_")
    if key in aggregate.COUNTS:
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
    if key in aggregate.COUNTS:
        return f"{round(value, 1):g}"
    scale, digits = (1, 3) if key.startswith(("RTE", "RRE")) else (1, 2) if key.startswith("s") else (100, 1)
    text = f"{scale * value:.{digits}f}"
    return text if np.isnan(deviation) else f"{text} ± {scale * deviation:.{digits}f}"
