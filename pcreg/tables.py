"""From the records of a benchmark to figures, and to a table that carries its protocol.

Keys of figures: IR and FMR of mutual matches, IR_one_way and FMR_one_way of nearest neighbours; RR by
information matrix (official 3DMatch), RR_rmse by true RMSE, RR_<m>m_<deg>deg by RTE and RRE; RTE and
RRE over the pairs within the first gate in both, RTE_separate and RRE_separate each within its own;
seconds per pair; pairs, and pairs_RR that the official recall counts. Ratios are fractions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pcreg import metrics
from pcreg.protocol import Protocol
from pcreg.published import Published

Figures = dict[str, float]
COUNTS = ("pairs", "pairs_RR")


def figures(records: Sequence[dict[str, Any]], protocol: Protocol) -> Figures:
    """The figures of these pairs, pooled. An error that is None fails every gate."""

    def column(key: str) -> np.ndarray:
        return np.array([np.nan if record[key] is None else record[key] for record in records])

    IR, IR_one_way, RTE, RRE = column("IR"), column("IR_one_way"), column("RTE"), column("RRE")
    result = {
        "pairs": len(records),
        "IR": metrics.mean(IR),
        "IR_one_way": metrics.mean(IR_one_way),
        "FMR": metrics.mean(metrics.feature_matched(IR, protocol.tau2)),
        "FMR_one_way": metrics.mean(metrics.feature_matched(IR_one_way, protocol.tau2)),
    }
    if has_information(records):
        official = column("information_rmse")[~column("consecutive").astype(bool)]
        result["pairs_RR"] = len(official)
        result["RR"] = metrics.mean(official <= protocol.recall_rmse)
    result["RR_rmse"] = metrics.mean(column("rmse") <= protocol.recall_rmse)
    for gate in protocol.gates:
        result[f"RR_{gate[0]:g}m_{gate[1]:g}deg"] = metrics.mean(metrics.within(RTE, RRE, gate))
    if protocol.gates:
        result["RTE"], result["RRE"] = metrics.joint_errors(RTE, RRE, protocol.gates[0])
        separate = metrics.separate_errors(RTE, RRE, protocol.gates[0])
        result["RTE_separate"], result["RRE_separate"] = separate
    result["seconds"] = metrics.mean([sum(record["seconds"].values()) for record in records])
    return result


def has_information(records: Sequence[dict[str, Any]]) -> bool:
    """Whether the data set came with the information matrices of the official recall."""
    return all("information_rmse" in record for record in records)


def by_scene(records: Sequence[dict[str, Any]], protocol: Protocol) -> dict[str, Figures]:
    """The figures of every scene, by name."""
    scenes = sorted({record["scene"] for record in records})
    return {scene: figures([r for r in records if r["scene"] == scene], protocol) for scene in scenes}


def overall(records: Sequence[dict[str, Any]], protocol: Protocol) -> Figures:
    """The figures of all pairs, averaged over scenes or pooled, as the protocol says."""
    pooled = figures(records, protocol)
    if not protocol.scene_mean:
        return pooled
    scenes = by_scene(records, protocol).values()
    return {
        key: value if key in COUNTS else metrics.over_scenes([scene[key] for scene in scenes])[0]
        for key, value in pooled.items()
    }


def table(
    records: Sequence[dict[str, Any]], protocol: Protocol, title: str, published: Sequence[Published] = ()
) -> str:
    """Markdown: a caption, a row per scene, the mean, and published figures that share a column."""
    total = overall(records, protocol)
    scenes = by_scene(records, protocol)
    rows = dict(scenes) if len(scenes) > 1 else {}
    rows["mean of scenes" if protocol.scene_mean else "all pairs"] = total
    if protocol.scene_mean and len(scenes) > 1:
        spread = {key: metrics.over_scenes([s[key] for s in scenes.values()])[1] for key in total}
        rows["std over scenes"] = {key: value for key, value in spread.items() if key not in COUNTS}
    notes = []
    for number, entry in enumerate(published, start=1):
        rows[f"{entry.method} [{number}]"] = entry.figures
        notes.append(f"[{number}] {entry.source}")
    keys = list(total)
    lines = [[""] + [_heading(key) for key in keys]]
    lines += [[name] + [_cell(key, row) for key in keys] for name, row in rows.items()]
    return "\n\n".join([f"**{title}**", caption(records, protocol), _markdown(lines), *notes]) + "\n"


def caption(records: Sequence[dict[str, Any]], protocol: Protocol) -> str:
    """What was measured and how, in words."""
    drawn = "all points" if protocol.samples is None else f"{protocol.samples} random points"
    words = [
        f"{len(records)} pairs; {drawn} per cloud, one per {protocol.voxel:g} m cell.",
        f"IR: matches closer than {protocol.tau1:g} m, %; FMR: pairs with IR above {protocol.tau2:.0%}, %;"
        " mutual nearest neighbours, beside it one-way.",
        f"RANSAC on mutual matches: {protocol.iterations} samples of {protocol.n}, "
        f"distance {protocol.distance:g} m, edges {protocol.edge_length:g}, "
        f"confidence {protocol.confidence:g}.",
    ]
    if has_information(records):
        words.append(
            f"RR: information-matrix RMSE at most {protocol.recall_rmse:g} m, "
            "neighbouring fragments left out, %."
        )
    else:
        words.append("The data set has no information matrices: the official recall is left out.")
    words.append(
        f"RR rmse: RMSE over the source points used at most {protocol.recall_rmse:g} m, all pairs, %."
    )
    if protocol.gates:
        metres, degrees = protocol.gates[0]
        words.append(
            f"RTE and RRE: mean over the pairs below {metres:g} m and {degrees:g} deg in both; "
            "separate: each over the pairs below its own gate, as FCGF averages."
        )
    if protocol.scene_mean:
        words.append("Mean: plain mean of the scenes; std: population.")
    words.append("seconds: per pair, description of both clouds included, reading them not.")
    return " ".join(words)


def _heading(key: str) -> str:
    unit = {"RTE": " m", "RRE": " deg"}.get(key.split("_")[0], "")
    return key.replace("_", " ") + unit


def _cell(key: str, row: Figures) -> str:
    value = row.get(key)
    if value is None or np.isnan(value):
        return ""
    if key in COUNTS:
        return f"{value:d}"
    if key.startswith(("RTE", "RRE")):
        return f"{value:.3f}"
    return f"{value:.2f}" if key == "seconds" else f"{100 * value:.1f}"


def _markdown(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    rows = [
        [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))]
        for name, *cells in [lines[0], rule, *lines[1:]]
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
