"""The files of a map: poses, graph.json, map.ply, a page, and optionally a picture.

Each of several maps has files of its own. Scans are read and downsampled one after another. If all scans
state their sensor positions, map.npz holds the viewpoint of each point.
"""

from collections.abc import Callable, Sequence
from colorsys import hsv_to_rgb
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from pcreg.arrays import every_nth
from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import write_ply
from pcreg.mapping.map import Map, folder_of
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.registration.strategy.prepared_map import COLORED, VIEWED
from pcreg.runtime.files import replacing
from pcreg.viz.files import packed, write_page
from pcreg.viz.overview import as_image, byte, font, upright
from pcreg.viz.render import ABOVE, BACKGROUND, SIDE, render

SIZE = (900, 800)  # pixels of a view of the picture
PICTURE_POINTS = 1_500_000  # of all scans
PAGE_POINTS = 400_000  # of all scans: 3.2 MB
GOLDEN_RATIO = 0.618034  # of a turn from one hue to the next: neighbours in the list differ


def write_map(
    folder: Path, found: Map, scan_of: Callable[[int], PreparedCloud], *, picture: bool = True
) -> list[Path]:
    """Write the files into `folder`, each whole; returns their paths.

    `scan_of(row)` reads a scan. Raises OutputError for the first file that cannot be written.
    """
    paths = found.save(folder)
    for number in range(1, found.count + 1):
        rows, place = found.scans(number), folder_of(folder, number)
        scans, viewpoints = zip(*(_downsampled(found, row, scan_of(row)) for row in rows), strict=True)
        colors = scan_colors(len(rows))
        paths += _write_clouds(place, scans, viewpoints, colors, found.voxel)
        title = f"map {number} of {found.count}, {len(rows)} scans"
        if picture:
            paths.append(place / "overview.png")
            map_overview(scans, colors, paths[-1], title=title)
        else:
            (place / "overview.png").unlink(missing_ok=True)  # of an earlier map
        paths.append(place / "viewer.html")
        map_viewer(found, number, scans, colors, paths[-1], title=title)
    return paths


def scan_colors(count: int) -> np.ndarray:
    """Colours (count, 3) uint8, bright and dark in turn."""
    hues = (0.08 + GOLDEN_RATIO * np.arange(count)) % 1
    colors = [hsv_to_rgb(hue, 0.75, (0.95, 0.72)[n % 2]) for n, hue in enumerate(hues)]
    return np.rint(255 * np.reshape(colors, (count, 3))).astype(np.uint8)


def _downsampled(found: Map, row: int, scan: PreparedCloud) -> tuple[np.ndarray, np.ndarray | None]:
    """One point per cell of half a voxel, and viewpoints if the scan states them, in the map's frame."""
    points, T = scan.cloud.points, found.T_map_scan[row]
    kept = voxel_downsample(points, found.voxel / 2)
    if scan.stated is None:
        return transform(T, points[kept]), None
    return transform(T, points[kept]), transform(T, np.broadcast_to(scan.stated, points.shape)[kept])


def _write_clouds(
    folder: Path,
    scans: Sequence[np.ndarray],
    viewpoints: Sequence[np.ndarray | None],
    colors: np.ndarray,
    voxel: float,
) -> list[Path]:
    """Write one cloud of all scans, a point per cell of half a voxel; returns the paths."""
    points = np.concatenate(scans)
    painted = np.repeat(colors, [len(scan) for scan in scans], axis=0)
    kept = voxel_downsample(points, voxel / 2)
    colored, viewed = folder / COLORED, folder / VIEWED
    write_ply(colored, points[kept], painted[kept])
    if any(seen_from is None for seen_from in viewpoints):
        viewed.unlink(missing_ok=True)  # of an earlier map
        return [colored]
    with replacing(viewed) as temporary:
        np.savez_compressed(temporary, points=points[kept], viewpoints=np.concatenate(viewpoints)[kept])
    return [colored, viewed]


def map_overview(scans: Sequence[np.ndarray], colors: np.ndarray, path: str | Path, *, title: str) -> None:
    """Draw scans (N, 3) from above and from the side, each in its colour (n, 3) uint8."""
    drawn = [scan.astype(np.float32) for scan in _drawn(scans, PICTURE_POINTS)]
    page = Image.new("RGB", (2 * SIZE[0] + 30, SIZE[1] + 60), byte(BACKGROUND))
    ImageDraw.Draw(page).text((page.width // 2, 28), title, (0, 0, 0), font(22), anchor="mm")
    for column, camera in enumerate((ABOVE, SIDE)):
        panel = render(drawn, list(colors / 255), camera, size=SIZE, splat=3)
        page.paste(as_image(panel), (10 + (SIZE[0] + 10) * column, 50))
    with replacing(path) as temporary:
        page.save(temporary, compress_level=2)


def _drawn(scans: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """Select at most `count` points of all scans (N, 3), and rotate them so that z is up."""
    drawn = [every_nth(scan, count // len(scans)) for scan in scans]
    view = upright(np.concatenate(drawn), drawn[0])  # the map has the frame of its first scan
    return [transform(view, scan) for scan in drawn]


def map_viewer(
    found: Map, number: int, scans: Sequence[np.ndarray], colors: np.ndarray, path: str | Path, *, title: str
) -> None:
    """Write the page of a map, which shows, hides and rotates its scans and pairs.

    Scans (N, 3) are in the frame of the map, with colours (n, 3) uint8. The page loads nothing.
    """
    rows = found.scans(number)
    place = {row: n for n, row in enumerate(rows)}
    drawn = _drawn(scans, PAGE_POINTS)
    names = [
        {"name": found.names[row], "color": "#" + bytes(color.tolist()).hex()}
        for row, color in zip(rows, colors, strict=True)
    ]
    edges = [edge for edge in found.edges if edge.registered and {edge.source, edge.target} <= place.keys()]
    unused = [edge for edge in edges if not edge.used]
    content = {
        "clouds": [packed(cloud) for cloud in drawn],
        "colors": colors.tolist(),
        "centres": [cloud.mean(0).round(4).tolist() for cloud in drawn],
        "used": [(place[edge.source], place[edge.target]) for edge in edges if edge.used],
        "unused": [(place[edge.source], place[edge.target]) for edge in unused],
    }
    reasons = [
        {"names": f"{found.names[edge.source]} to {found.names[edge.target]}", "why": edge.unused_because}
        for edge in unused
    ]
    write_page(path, "pcreg.viz", "map.html", title=title, scans=names, unused=reasons, content=content)
