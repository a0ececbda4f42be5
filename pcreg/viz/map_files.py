"""The files of a map: poses.txt and graph.json, map.ply, and by option overview.png and viewer.html.

Of several maps each has files of its own. Scans are read one after another, and thinned as they come. If all
scans state where their sensor stood, map.npz holds from where each point was seen.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from pcreg.geometry.se3 import transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.io.cloud import write_ply
from pcreg.mapping.map import COLORED, VIEWED, Map, folder_of
from pcreg.registration.clouds.prepared import PreparedCloud
from pcreg.runtime.files import replacing
from pcreg.viz.map_overview import map_overview
from pcreg.viz.map_viewer import map_viewer

GOLDEN_RATIO = 0.618034  # of a turn from one hue to the next: neighbours in the list differ


def write_map(
    folder: Path,
    found: Map,
    scan_of: Callable[[int], PreparedCloud],
    *,
    picture: bool = True,
    html: bool = True,
) -> list[Path]:
    """Write the files into `folder`, each whole; returns their paths.

    `scan_of(row)` reads a scan. Raises OutputError for the first file that cannot be written.
    """
    paths = found.save(folder)
    for number in range(1, found.count + 1):
        rows, place = found.scans(number), folder_of(folder, number)
        thinned = [_thinned(found, row, scan_of(row)) for row in rows]
        scans, viewpoints = [points for points, _ in thinned], [seen_from for _, seen_from in thinned]
        colors = scan_colors(len(rows))
        paths += _write_clouds(place, scans, viewpoints, colors, found.voxel)
        title = f"map {number} of {found.count}, {len(rows)} scans"
        if picture:
            paths.append(place / "overview.png")
            map_overview(scans, colors, paths[-1], title=title)
        if html:
            paths.append(place / "viewer.html")
            map_viewer(found, number, scans, colors, paths[-1], title=title)
    return paths


def scan_colors(count: int) -> np.ndarray:
    """Colours (count, 3) uint8, of full and of darker value in turn."""
    number = np.arange(count)
    hue = (0.08 + GOLDEN_RATIO * number) % 1
    value = np.where(number % 2, 0.72, 0.95)
    turned = (hue[:, None] * 6 + np.array([0, 4, 2])) % 6
    bright = np.clip(np.abs(turned - 3) - 1, 0, 1)
    saturation = 0.75
    return np.rint(255 * value[:, None] * (1 - saturation * (1 - bright))).astype(np.uint8)


def _thinned(found: Map, row: int, scan: PreparedCloud) -> tuple[np.ndarray, np.ndarray | None]:
    """One point per cell of half a voxel, and from where each was seen if that is stated: of the map."""
    points, T = scan.cloud.points, found.T_map_scan[row]
    kept = voxel_downsample(points, found.voxel / 2)
    if scan.stated is None:
        return transform(T, points[kept]), None
    return transform(T, points[kept]), transform(T, np.broadcast_to(scan.stated, points.shape)[kept])


def _write_clouds(
    folder: Path,
    scans: list[np.ndarray],
    viewpoints: list[np.ndarray | None],
    colors: np.ndarray,
    voxel: float,
) -> list[Path]:
    """One cloud, a point per cell of half a voxel whatever scan it comes from; returns the paths."""
    points = np.concatenate(scans)
    owner = np.repeat(np.arange(len(scans)), [len(scan) for scan in scans])
    kept = voxel_downsample(points, voxel / 2)
    colored, viewed = folder / COLORED, folder / VIEWED
    write_ply(colored, points[kept], colors[owner[kept]])
    if any(seen_from is None for seen_from in viewpoints):
        viewed.unlink(missing_ok=True)  # of a run before
        return [colored]
    with replacing(viewed) as temporary:
        np.savez_compressed(temporary, points=points[kept], viewpoints=np.concatenate(viewpoints)[kept])
    return [colored, viewed]
