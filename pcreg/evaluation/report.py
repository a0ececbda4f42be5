"""One HTML file that shows a benchmark: tables, charts and the pairs that went wrong.

It holds everything it shows and asks for nothing from anywhere.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from pcreg.evaluation.aggregate import succeeded
from pcreg.evaluation.caption import Setup, caption
from pcreg.evaluation.charts import charts
from pcreg.evaluation.failures import FailureCase, failures
from pcreg.evaluation.tables import Table, per_scene, tables
from pcreg.io.pairs import PairDataset
from pcreg.runtime.files import replacing

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd }
.caption { color: #444; font-size: .9rem }
.wide { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #eee }
th { background: #f6f6f6 }
th:first-child, td:first-child { text-align: left }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
img { max-width: 100%; height: auto }
.pairs { display: grid; grid-template-columns: repeat(auto-fill, minmax(30rem, 1fr)); gap: 1.2rem }
@media (max-width: 34rem) { .pairs { grid-template-columns: 1fr } }
figure { margin: 0; border: 1px solid #ddd; padding: .6rem }
.views { display: grid; grid-template-columns: 1fr 1fr; gap: .4rem; font-size: .8rem; color: #666 }
figcaption { font-size: .85rem; overflow-wrap: anywhere }
pre { background: #f6f6f6; padding: .8rem; overflow-x: auto; font-size: .8rem }
"""


def report(
    records: Sequence[dict[str, Any]],
    setup: Setup,
    dataset: PairDataset,
    path: str | Path,
    pictures: int = 20,
) -> None:
    """Write the report to `path`, atomically; `dataset` has the clouds of the worst pairs."""
    scenes = [per_scene(records, setup, samples) for samples in setup.protocol.samples]
    first = setup.protocol.samples[0]
    parts = [
        f"<h1>{escape(setup.title)}</h1>",
        f'<p class="caption">{escape(caption(records, setup))}</p>',
        "<h2>Figures beside published ones</h2>",
        *map(_table, tables(records, setup)),
        "<h2>By scene</h2>",
        *map(_table, scenes),
    ]
    for title, svg in charts(records, setup).items():
        parts += [f"<h2>{title}</h2>", f'<img alt="{title}" src="{_data("svg+xml", svg)}">']
    drawn = "all" if first is None else first
    parts += [
        f"<h2>The worst pairs, by RMSE, at N = {drawn} and seed {setup.seeds[0]}</h2>",
        '<p class="caption">Source orange, target blue, seen across the widest side of the target.</p>',
        '<div class="pairs">',
        *(_figure(wrong, setup) for wrong in failures(records, setup, dataset, pictures)),
        "</div>",
        "<h2>Settings</h2>",
        f"<pre>{escape(json.dumps(records[0]['run'], indent=2))}</pre>",
    ]
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(setup.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")


def _table(table: Table) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    notes = "".join(f'<p class="caption">{escape(note)}</p>' for note in table.notes)
    rows = "\n".join(line(row, "td") for row in table.rows)
    return (
        f'<div class="wide"><table><caption>{escape(table.title)}</caption>\n'
        f"<thead>{line(table.header, 'th')}</thead>\n<tbody>\n{rows}\n</tbody></table></div>{notes}"
    )


def _figure(wrong: FailureCase, setup: Setup) -> str:
    row = wrong.row
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
        found = f"{accepted} with confidence {row['confidence']:.2f}: {escape(row['reason'])}"
    overlap = "unknown" if row["overlap_measured"] is None else f"{row['overlap_measured']:.2f}"
    words = f"<b>{escape(row['pair'])}</b><br>{errors}, {verdict}; overlap {overlap}, {found}"
    estimated = "no estimate" if wrong.estimated is None else _picture("estimated", wrong.estimated)
    return (
        f'<figure><div class="views"><div>estimated<br>{estimated}</div>'
        f"<div>true<br>{_picture('true', wrong.true)}</div></div><figcaption>{words}</figcaption></figure>"
    )


def _picture(alt: str, jpeg: bytes) -> str:
    return f'<img alt="{alt}" src="{_data("jpeg", jpeg)}">'


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
