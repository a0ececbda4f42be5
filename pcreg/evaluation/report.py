"""One HTML file that shows a benchmark: tables, charts and the pairs that went wrong.

It contains everything it shows and loads nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pcreg.evaluation.aggregate import succeeded
from pcreg.evaluation.caption import Setup, caption
from pcreg.evaluation.charts import charts
from pcreg.evaluation.failures import FailureCase, failures
from pcreg.evaluation.tables import per_scene, tables
from pcreg.io.pairs import PairDataset
from pcreg.viz.page import write_page


def report(
    records: Sequence[dict[str, Any]],
    setup: Setup,
    dataset: PairDataset,
    path: str | Path,
    pictures: int = 20,
) -> None:
    """Write the report to `path`, atomically; `dataset` has the clouds of the worst pairs."""
    write_page(
        path,
        "pcreg.evaluation",
        "report.html",
        records=records,
        setup=setup,
        caption=caption(records, setup),
        tables=tables(records, setup),
        scenes=[per_scene(records, setup, samples) for samples in setup.protocol.samples],
        charts=charts(records, setup),
        samples=setup.protocol.samples[0],
        failures=failures(records, setup, dataset, pictures),
        describe=lambda case: _figures(case, setup),
    )


def _figures(case: FailureCase, setup: Setup) -> str:
    row = case.row
    errors = (
        "no estimate"
        if row["rmse"] is None
        else f"RTE {row['RTE']:.3f} m, RRE {row['RRE']:.2f} deg, RMSE {row['rmse']:.3f} m"
    )
    verdict = "registered" if succeeded([row], setup.protocol)[0] else "not registered"
    if "IR" in row:
        found = f"IR {100 * row['IR']:.1f} %, {row['inliers']} inliers of {row['matches']} matches"
    else:
        accepted = "accepted" if row["registered"] else "refused"
        found = f"{accepted} with confidence {row['confidence']:.2f}: {row['reason']}"
    overlap = "unknown" if row["overlap_measured"] is None else f"{row['overlap_measured']:.2f}"
    return f"{errors}, {verdict}; overlap {overlap}, {found}"
