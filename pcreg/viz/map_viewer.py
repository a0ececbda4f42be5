"""One HTML page on which a map can be turned round, its scans switched on and off and its pairs seen.

It contains everything it shows, loads nothing, and draws on a plain canvas, as that of a registration does.
"""

from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.geometry.subsample import every_nth
from pcreg.mapping.map import Map
from pcreg.viz.overview import principal_axes
from pcreg.viz.page import write_page
from pcreg.viz.viewer import packed

MAX_DRAWN_POINTS = 400_000  # of all scans: 3.2 MB


def map_viewer(
    found: Map, number: int, scans: list[np.ndarray], colors: np.ndarray, path: str | Path, *, title: str
) -> None:
    """Write the page of a map by its number, atomically.

    Scans (N, 3) are in the frame of the map, with colours (n, 3) uint8.
    """
    rows = found.scans(number)
    place = {row: n for n, row in enumerate(rows)}
    drawn = [every_nth(scan, MAX_DRAWN_POINTS // len(scans)) for scan in scans]
    view = principal_axes(np.concatenate(drawn))
    drawn = [transform(view, scan) for scan in drawn]
    within = [edge for edge in found.edges if edge.registered and {edge.source, edge.target} <= place.keys()]
    ends = {
        used: [[place[e.source], place[e.target]] for e in within if e.used == used] for used in (True, False)
    }
    write_page(
        path,
        "pcreg.viz",
        "map.html",
        title=title,
        scans=[
            {"name": found.names[row], "color": "#" + bytes(color.tolist()).hex()}
            for row, color in zip(rows, colors, strict=True)
        ],
        unused=[
            {"names": f"{found.names[e.source]} to {found.names[e.target]}", "why": e.unused_because}
            for e in within
            if not e.used
        ],
        content={
            "clouds": [packed(cloud) for cloud in drawn],
            "colors": colors.tolist(),
            "centres": [cloud.mean(0).round(4).tolist() for cloud in drawn],
            "used": ends[True],
            "unused": ends[False],
        },
    )
