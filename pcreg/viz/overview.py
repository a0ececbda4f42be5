"""Pictures of a registration: clouds before and after, residuals of the overlap.

Pillow composes the views that pcreg.viz.render draws, because matplotlib takes seconds.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pcreg.arrays import every_nth
from pcreg.geometry.normals import normals_of
from pcreg.geometry.overlap import distances_to
from pcreg.geometry.se3 import box, se3, transform
from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.geometry.voxel_size import middle_box
from pcreg.runtime import parallel
from pcreg.viz.render import ABOVE, BACKGROUND, FRONT, SIDE, render

SOURCE = np.array([245, 146, 52]) / 255  # orange
TARGET = np.array([31, 126, 176]) / 255  # blue
PANEL = (590, 380)  # pixels of a view
SUPERSAMPLING = 1.5  # views are drawn larger and scaled down, against jagged edges
MAX_DRAWN_POINTS = 150_000  # of a cloud; a view has hardly more pixels, and a page takes 1.4 MB for them
MAX_DISTANCE_EXTENTS = 3.0  # from the middle of a cloud to the farthest points that are drawn
LIMIT_PIXELS = 18  # of a section, for the largest distance that is coloured
MARGIN = 3 * np.array([[-1], [1]])  # around the overlap, times the largest distance that is coloured
MAX_FILL = 0.2  # of the cells of a section; a floor or a wall within it shows no alignment
VIEW_SLOPE = 1.2  # of the edges of a depth camera's view: |x| / z and |y| / z
GREY = (89, 89, 89)  # of words
NO_PARTNER_COLOR = np.array([0.78, 0.78, 0.78])
# Nine colours, evenly spaced: importing matplotlib for them takes half a second
VIRIDIS = ("440154", "482d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725")

# Name, clouds (N, 3), their colours (3,) or (N, 3), camera (3, 3), and frame (2, 2) as `render` takes it
View = tuple[str, list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray | None]


def overview(
    source: np.ndarray,
    target: np.ndarray,
    T_target_source: np.ndarray,
    path: str | Path | BinaryIO,
    *,
    limit: float,
    title: str = "",
) -> None:
    """Write a picture of source (N, 3) and target (M, 3) before and after T_target_source to a path or file.

    A third view colours the moved source, where it overlaps, by its distance to the target, up to `limit`
    metres. Three sections below are enlarged so that half of the limit is visible.
    """
    source, target = parallel.each(shown, (source, target))
    distance = distances_to(target, source, T_target_source, limit)
    view = upright(target)
    before, after, target = (
        transform(T, points).astype(np.float32)  # precise enough, as the origin is near
        for T, points in ((view, source), (view @ T_target_source, source), (view, target))
    )
    near = after[np.isfinite(distance), :2]
    frame = np.percentile(near, (1, 99), axis=0) + MARGIN * limit if len(near) else None
    views: list[View] = [
        ("before", [before, target], [SOURCE, TARGET], ABOVE, None),
        ("after", [after, target], [SOURCE, TARGET], ABOVE, None),
        ("source by distance to target", [after], [residual_colors(distance, limit)], ABOVE, frame),
        *_sections(after, target, limit),
    ]
    panels = parallel.each(_panel, views)
    page = Image.new("RGB", (1800, 930), byte(BACKGROUND))
    draw = ImageDraw.Draw(page)
    draw.text((900, 26), title, (0, 0, 0), font(22), anchor="mm")
    scale = LIMIT_PIXELS / limit  # pixels per metre of a section
    bar = 10.0 ** np.floor(np.log10(PANEL[0] / 5 / scale))
    for n, ((name, *_), panel) in enumerate(zip(views, panels, strict=True)):
        x, y = 5 + 600 * (n % 3), 70 + 418 * (n // 3)
        page.paste(panel, (x, y))
        draw.text((x + 295, y - 12), name, GREY, font(19), anchor="mm")
        if n > 1:
            draw.rectangle((x, y, x + PANEL[0], y + PANEL[1]), outline=byte(NO_PARTNER_COLOR))
        if n > 2:
            draw.line((x + 10, y + 370, x + 10 + bar * scale, y + 370), GREY, 3)
            draw.text((x + 10, y + 364), f"{bar:g} m", GREY, font(16), anchor="lb")
    _legend(draw, page.height - 26, limit)
    page.save(path, "png", compress_level=2)


def _legend(draw: ImageDraw.ImageDraw, y: int, limit: float) -> None:
    """Draw the legend of the colours at height y."""
    far = f"no target point within {limit:.2g} m"
    for x, name, color in (540, "source", SOURCE), (660, "target", TARGET), (1500, far, NO_PARTNER_COLOR):
        draw.ellipse((x - 24, y - 6, x - 12, y + 6), byte(color))
        draw.text((x, y), name, GREY, font(17), anchor="lm")
    for n, color in enumerate(residual_colors(np.linspace(0, 0.999 * limit, 240), limit)):
        draw.line((1130 + n, y - 8, 1130 + n, y + 8), byte(color))
    draw.text((1120, y), "distance 0", GREY, font(17), anchor="rm")
    draw.text((1380, y), f"{limit:.2g} m", GREY, font(17), anchor="lm")


def _sections(source: np.ndarray, target: np.ndarray, limit: float) -> Iterator[View]:
    """Three sections of clouds (N, 3) with z up, each `limit` thick, near where both have most points.

    Each lies at the offset where both clouds have most points and neither fills the frame, as a floor would.
    """
    size = np.array(PANEL) * limit / LIMIT_PIXELS
    clouds = [cloud.astype(np.float64) for cloud in (source, target)]
    clouds = [cloud[voxel_downsample(cloud, limit)] for cloud in clouds]
    middle = _fullest_place(*clouds, size[0] / 2, limit)
    near = [cloud[(np.abs(cloud - middle)[:, :2] < size[0] / 2).all(1)] for cloud in clouds]
    offsets = np.arange(-size[0] / 2, size[0] / 2 + limit, limit)
    for axis, name, camera in (2, "above", ABOVE), (1, "the side", SIDE), (0, "the front", FRONT):
        counts = np.stack([np.histogram(cloud[:, axis] - middle[axis], offsets)[0] for cloud in near])
        counts[:, counts.max(0) > MAX_FILL * size.prod() / limit**2] = 0
        at = middle[axis] + offsets[counts.min(0).argmax()]
        cut = [cloud[(cloud[:, axis] >= at) & (cloud[:, axis] < at + limit)] for cloud in (source, target)]
        frame = camera[:2] @ middle + np.array([[-0.5], [0.5]]) * size
        yield f"section from {name}, {limit:.2g} m thick", cut, [SOURCE, TARGET], camera, frame


def _fullest_place(source: np.ndarray, target: np.ndarray, width: float, limit: float) -> np.ndarray:
    """Middle (3,) of the square, `width` metres wide or more, where both clouds have most upright surface.

    Clouds have a point per cell of `limit` metres. A column of cells counts the points beyond its
    first, so that a floor counts next to nothing.
    """
    both = np.concatenate([source, target])
    low, high = box(both)
    width = max(width, (high - low).max() / 500)
    edges = [np.arange(low[axis], high[axis] + 2 * width, width) for axis in (0, 1)]
    standing = []
    for cloud in (source, target):
        columns, heights = np.unique(np.floor(cloud[:, :2] / limit), axis=0, return_counts=True)
        standing.append(np.histogram2d(*(columns.T * limit), edges, weights=heights - 0.99)[0])
    common = np.minimum(*standing) + 1e-6 * sum(standing)  # the sum decides if no square has both clouds
    fullest = np.unravel_index(common.argmax(), common.shape)
    columns = np.floor(both[:, :2] / limit) * limit
    inside = (np.floor((columns - low[:2]) / width) == fullest).all(1)
    return np.median(both[inside] if inside.any() else both, axis=0)


def shown(points: np.ndarray) -> np.ndarray:
    """Every n-th point, 150,000 at most, without outliers, which would set the scale."""
    points = every_nth(points, MAX_DRAWN_POINTS)
    if len(points) == 0:
        return points
    low, high = middle_box(points)
    far = MAX_DISTANCE_EXTENTS * np.linalg.norm(high - low)
    return points[(np.abs(points - (low + high) / 2) <= far).all(1)]


def residual_colors(distance: np.ndarray, limit: float) -> np.ndarray:
    """Colours (N, 3) in 0..1: viridis up to `limit`, grey beyond."""
    steps, bands = np.linspace(0, limit, len(VIRIDIS)), zip(*map(bytes.fromhex, VIRIDIS), strict=True)
    colors = np.stack([np.interp(distance, steps, band) for band in bands], axis=1) / 255
    return np.where(np.isfinite(distance)[:, None], colors, NO_PARTNER_COLOR)


def _panel(view: View) -> Image.Image:
    _, clouds, colors, camera, frame = view
    width, height = (round(SUPERSAMPLING * side) for side in PANEL)
    image = as_image(render(clouds, colors, camera, size=(width, height), splat=4, frame=frame))
    return image.resize(PANEL, Image.Resampling.LANCZOS)


def as_image(pixels: np.ndarray) -> Image.Image:
    """The image of RGB values (height, width, 3) in 0..1."""
    return Image.fromarray(np.rint(255 * pixels.clip(0, 1)).astype(np.uint8))


def byte(color: np.ndarray) -> tuple[int, ...]:
    return tuple(np.rint(255 * color).astype(int).tolist())


def font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which has most alphabets of file names; Pillow's own font is ASCII and a few signs."""
    return ImageFont.truetype(Path(__file__).with_name("DejaVuSans.ttf"), size)


def upright(points: np.ndarray, scan: np.ndarray | None = None) -> np.ndarray:
    """Motion (4, 4) to a frame at the middle of a cloud (N, 3) with z up, x along its length.

    Up is z, unless a depth camera at the origin would see nearly all points of `scan`, by default the cloud:
    then up is the mean normal of the surfaces whose normals are nearest to the -y of the camera.
    """
    scan = every_nth(points if scan is None else scan, 5_000)
    points = every_nth(points, 5_000)
    centre, (near, far) = points.mean(0), np.percentile(scan[:, 2], (1, 99))
    up = np.array([0.0, 0.0, 1.0])
    in_view = (np.abs(scan[:, :2]) < VIEW_SLOPE * scan[:, 2:]).all(1)
    if in_view.mean() > 0.95 and far > 2 * near:
        up, normals = np.array([0.0, -1.0, 0.0]), normals_of(scan, 0.1 * far)[0]
        for cosine in (0.75, 0.9, 0.98):
            alike = normals @ up
            level = (normals * np.sign(alike)[:, None])[np.abs(alike) > cosine].sum(0)
            up = level / np.linalg.norm(level) if level.any() else up
    across = points - centre - np.outer((points - centre) @ up, up)
    along = np.linalg.svd(across, full_matrices=False)[2][0]
    along *= np.sign(along[np.abs(along).argmax()])
    axes = np.stack([along, np.cross(up, along), up])
    return se3(axes, -axes @ centre)
