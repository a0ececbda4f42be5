"""Pictures of a registration: clouds before and after, residuals of the overlap.

Pillow puts together what pcreg.viz.render draws, because matplotlib takes seconds.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pcreg.arrays import every_nth
from pcreg.geometry.overlap import distances_to
from pcreg.geometry.se3 import se3, transform
from pcreg.geometry.voxel_size import middle_box
from pcreg.runtime import parallel
from pcreg.runtime.files import replacing
from pcreg.viz.render import BACKGROUND, from_above, from_the_side, render

SOURCE = np.array([245, 146, 52]) / 255  # orange
TARGET = np.array([31, 126, 176]) / 255  # blue
PANEL = (590, 380)  # pixels of a view
SUPERSAMPLING = 1.5  # views are drawn larger and scaled down, against jagged edges
MAX_DRAWN_POINTS = 150_000  # of a cloud; a view has hardly more pixels, and a page takes 1.4 MB for them
MAX_DISTANCE_EXTENTS = 3.0  # from the middle of a cloud to points that are drawn
MAX_TARGET_POINTS = 1_000_000  # searched; more would move no colour that a reader can see
NO_PARTNER_COLOR = np.array([0.78, 0.78, 0.78])
# Nine colours, evenly spaced: importing matplotlib for them takes half a second
VIRIDIS = ("440154", "482d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")


def overview(
    source: np.ndarray,
    target: np.ndarray,
    T_target_source: np.ndarray,
    path: str | Path,
    *,
    limit: float,
    title: str = "",
    T_view_target: np.ndarray | None = None,
    cameras: Sequence[np.ndarray] | None = None,
    ceiling: float = np.inf,
) -> None:
    """Write a picture of source (N, 3) and target (M, 3) before and after T_target_source, atomically.

    A third column colours the moved source by its distance to the target, up to `limit` metres.
    `T_view_target` (4, 4) takes the target into a frame whose z is up, by default its principal axes.
    `cameras` (3, 3) see that frame, a row each, by default from above and from the side. Points higher than
    `ceiling` metres there are left out, so that one looks into a room.
    """
    source, target = parallel.each(shown, (source, target))
    distance = residuals(source, target, T_target_source, limit)
    view = principal_axes(target) if T_view_target is None else T_view_target
    before, after, target = (
        transform(T, points).astype(np.float32)  # near the picture's own origin, digits enough
        for T, points in ((view, source), (view @ T_target_source, source), (view, target))
    )
    low, below = after[:, 2] < ceiling, target[target[:, 2] < ceiling]
    columns = {
        "before": ([before[low], below], [SOURCE, TARGET]),
        "after": ([after[low], below], [SOURCE, TARGET]),
        f"source by distance to target, 0 to {limit:.2g} m": (
            [after[low]],
            [residual_colors(distance[low], limit)],
        ),
    }
    cameras = (from_above(), from_the_side()) if cameras is None else cameras
    views = [(drawn, camera) for drawn in columns.values() for camera in cameras]
    panels = iter(parallel.each(lambda view: _panel(*view[0], view[1]), views))
    page = Image.new("RGB", (1800, 100 + 400 * len(cameras)), byte(BACKGROUND))
    draw = ImageDraw.Draw(page)
    draw.text((900, 28), title, (0, 0, 0), font(22), anchor="mm")
    for column, name in enumerate(columns):
        draw.text((300 + 600 * column, 78), name, (89, 89, 89), font(20), anchor="mm")
        for row in range(len(cameras)):
            page.paste(next(panels), (5 + 600 * column, 92 + (PANEL[1] + 4) * row))
    for x, name, color in ((830, "source", SOURCE), (960, "target", TARGET)):
        y = page.height - 18
        draw.ellipse((x - 24, y - 6, x - 12, y + 6), byte(color))
        draw.text((x, y), name, byte(color), font(19), anchor="lm")
    with replacing(path) as temporary:
        page.save(temporary, compress_level=2)


def shown(points: np.ndarray) -> np.ndarray:
    """Every n-th point, 150,000 at most, without outliers, which would set the scale."""
    points = every_nth(points, MAX_DRAWN_POINTS)
    if len(points) == 0:
        return points
    low, high = middle_box(points)
    far = MAX_DISTANCE_EXTENTS * np.linalg.norm(high - low)
    return points[(np.abs(points - (low + high) / 2) <= far).all(1)]


def residuals(
    source: np.ndarray, target: np.ndarray, T_target_source: np.ndarray, limit: float
) -> np.ndarray:
    """Metres (N,) from the moved source to the nearest target points; inf from `limit`."""
    return distances_to(every_nth(target, MAX_TARGET_POINTS), source, T_target_source, limit)


def residual_colors(distance: np.ndarray, limit: float) -> np.ndarray:
    """Colours (N, 3) in 0..1: viridis up to `limit`, grey beyond."""
    near = np.isfinite(distance)
    colors = np.tile(NO_PARTNER_COLOR, (len(distance), 1))
    steps, bands = np.linspace(0, limit, len(VIRIDIS)), zip(*map(bytes.fromhex, VIRIDIS), strict=True)
    colors[near] = np.stack([np.interp(distance[near], steps, band) for band in bands], axis=1) / 255
    return colors


def _panel(clouds: list[np.ndarray], colors: list[np.ndarray], camera: np.ndarray) -> Image.Image:
    width, height = (round(SUPERSAMPLING * side) for side in PANEL)
    image = as_image(render(clouds, colors, camera, size=(width, height), splat=4))
    return image.resize(PANEL, Image.Resampling.LANCZOS)


def as_image(pixels: np.ndarray) -> Image.Image:
    """The image of RGB values (height, width, 3) in 0..1."""
    return Image.fromarray(np.rint(255 * pixels.clip(0, 1)).astype(np.uint8))


def byte(color: np.ndarray) -> tuple[int, ...]:
    return tuple(np.rint(255 * color).astype(int).tolist())


def font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which has most alphabets of file names; Pillow's own font is ASCII and a few signs."""
    return ImageFont.truetype(Path(__file__).with_name("DejaVuSans.ttf"), size)


def principal_axes(points: np.ndarray) -> np.ndarray:
    """Motion (4, 4) to the principal axes of a cloud (N, 3): x longest, z shortest.

    Each axis points along the coordinate that it is nearest to, so that what was up mostly stays up.
    """
    centre = points.mean(0)
    _, _, axes = np.linalg.svd((points - centre)[:: max(1, len(points) // 10_000)], full_matrices=False)
    for n in (0, 2):
        axes[n] *= np.sign(axes[n, np.abs(axes[n]).argmax()])
    axes[1] = np.cross(axes[2], axes[0])
    return se3(axes, -axes @ centre)
