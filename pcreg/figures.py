"""Pictures of a registration: both clouds before and after, and how far apart they lie where they overlap.

Points are drawn by our own small renderer and put together by Pillow, because matplotlib takes seconds,
and sorts scatter points by depth but gives no sense of it. Parallel projection, nearest point first, then
eye-dome lighting (Boucheny, PhD thesis, Grenoble 2009): a pixel is darker the further it lies behind its
neighbours, so that edges stand out without normals or lamps.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pcreg import threads
from pcreg.files import replacing
from pcreg.geometry import se3, transform
from pcreg.residual import residual_colors, residuals
from pcreg.scale import middle_box

SOURCE = np.array([245, 146, 52]) / 255  # orange
TARGET = np.array([31, 126, 176]) / 255  # blue
BACKGROUND = np.array([1.0, 1.0, 1.0])
PANEL = (590, 380)  # pixels of a view
DETAIL = 1.5  # of a view is drawn larger and scaled down, against jagged edges
MOST_POINTS = 150_000  # drawn of a cloud; a view has hardly more pixels, and a page takes 1.4 MB for them
STRAY = 3.0  # extents of a cloud from its middle; what is further away is not drawn


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
    `T_view_target` (4, 4) takes the target into a frame whose z is up; the target's principal axes, z
    along the shortest, if left out. `cameras` (3, 3) see that frame, a row each: from above and from
    the side if left out. Points that end up higher than `ceiling` metres in that frame are left out, so
    that one looks into a room. The suffix of `path` chooses the format.
    """
    source, target = (shown(points) for points in (source, target))
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
    panels = iter(threads.each(lambda view: _panel(*view[0], view[1]), views))
    page = Image.new("RGB", (1800, 100 + 400 * len(cameras)), _byte(BACKGROUND))
    draw = ImageDraw.Draw(page)
    draw.text((900, 28), title, (0, 0, 0), _font(22), anchor="mm")
    for column, name in enumerate(columns):
        draw.text((300 + 600 * column, 78), name, (89, 89, 89), _font(20), anchor="mm")
        for row in range(len(cameras)):
            page.paste(next(panels), (5 + 600 * column, 92 + (PANEL[1] + 4) * row))
    for x, name, color in ((830, "source", SOURCE), (960, "target", TARGET)):
        y = page.height - 18
        draw.ellipse((x - 24, y - 6, x - 12, y + 6), _byte(color))
        draw.text((x, y), name, _byte(color), _font(19), anchor="lm")
    with replacing(path) as temporary:
        page.save(temporary, compress_level=2)


def shown(points: np.ndarray) -> np.ndarray:
    """At most 150,000 of points (N, 3), every n-th, without strays, which would make a speck of the cloud."""
    points = points[:: max(1, -(-len(points) // MOST_POINTS))]
    if len(points) == 0:
        return points
    low, high = middle_box(points)
    far = STRAY * np.linalg.norm(high - low)
    return points[(np.abs(points - (low + high) / 2) <= far).all(1)]


def _panel(clouds: list[np.ndarray], colors: list[np.ndarray], camera: np.ndarray) -> Image.Image:
    width, height = (round(DETAIL * side) for side in PANEL)
    image = render(clouds, colors, camera, size=(width, height), splat=4)
    return Image.fromarray(np.rint(255 * image).astype(np.uint8)).resize(PANEL, Image.Resampling.LANCZOS)


def _byte(color: np.ndarray) -> tuple[int, ...]:
    return tuple(np.rint(255 * color).astype(int).tolist())


def _font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which writes most alphabets that a file may be named in; matplotlib brings it along."""
    folder = Path(find_spec("matplotlib").origin).parent / "mpl-data/fonts/ttf"
    return ImageFont.truetype(folder / "DejaVuSans.ttf", size)


def principal_axes(points: np.ndarray) -> np.ndarray:
    """The motion (4, 4) to the frame whose axes are those of the cloud (N, 3), the longest x, the shortest z.

    Each axis points along the coordinate that it is nearest to, so that what was up mostly stays up.
    """
    centre = points.mean(0)
    _, _, axes = np.linalg.svd((points - centre)[:: max(1, len(points) // 10_000)], full_matrices=False)
    for n in (0, 2):
        axes[n] *= np.sign(axes[n, np.abs(axes[n]).argmax()])
    axes[1] = np.cross(axes[2], axes[0])
    return se3(axes, -axes @ centre)


def oblique(azimuth: float = 35.0, elevation: float = 38.0) -> np.ndarray:
    """Rows right, up, towards the viewer (3, 3) of a camera that looks down from -x -y, in degrees."""
    a, e = np.radians([azimuth, elevation])
    towards = np.array([-np.sin(a) * np.cos(e), -np.cos(a) * np.cos(e), np.sin(e)])
    right = np.array([np.cos(a), -np.sin(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def from_above() -> np.ndarray:
    """The camera (3, 3) that looks straight down, x to the right."""
    return np.eye(3)


def from_the_side() -> np.ndarray:
    """The camera (3, 3) that looks along y, x to the right and z up."""
    return np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])


def render(
    clouds: list[np.ndarray],
    colors: list[np.ndarray],
    camera: np.ndarray,
    *,
    size: tuple[int, int] = (1560, 960),
    splat: int = 7,
    depth_scale: float = 0.02,
) -> np.ndarray:
    """An RGB image (height, width, 3) in 0..1 of clouds (N, 3), each in its colour (3,) or colours (N, 3).

    A point covers splat x splat pixels. A pixel that lies e times `depth_scale`, a fraction of the
    picture's extent, behind the mean of its neighbours is darkened to about 1 / e.
    """
    width, height = size
    right, up, near = np.concatenate(clouds, dtype=np.float32).dot(camera.T.astype(np.float32)).T
    paint = np.concatenate(
        [np.broadcast_to(np.float32(c), (len(each), 3)) for each, c in zip(clouds, colors, strict=True)]
    )
    if len(paint) == 0:
        return np.tile(np.float32(BACKGROUND), (height, width, 1))
    wide, high, deep = (max(float(np.ptp(values)), 1e-9) for values in (right, up, near))
    scale = 0.96 * min(width / wide, height / high)
    column = ((right - right.min()) * scale + (width - scale * wide) / 2).astype(np.int64)
    row = height - 1 - ((up - up.min()) * scale + (height - scale * high) / 2).astype(np.int64)

    # The largest key of a pixel is of its nearest point: depth above, the point's number below.
    key = ((near - near.min()) * (2**30 / deep)).astype(np.int64) << 32
    key += np.arange(len(key))
    seen = np.full(height * width, -1)
    np.maximum.at(seen, row * width + column, key)
    seen = _spread(seen.reshape(height, width), splat)
    covered = seen >= 0
    seen &= 0xFFFFFFFF
    seen[~covered] = 0
    image = np.where(covered[..., None], paint[seen], np.float32(BACKGROUND))
    return _eye_dome(image, near[seen], covered, np.float32(depth_scale * max(wide, high)))


def _spread(image: np.ndarray, size: int) -> np.ndarray:
    """The largest value of the size x size pixels around each of an image (height, width), none negative."""
    for _ in range(2):
        padded = np.pad(image, ((size // 2, size - 1 - size // 2), (0, 0)), constant_values=-1)
        largest = padded[: len(image)].copy()
        for shift in range(1, size):
            np.maximum(largest, padded[shift : shift + len(image)], out=largest)
        image = np.ascontiguousarray(largest.T)
    return image


def _eye_dome(image: np.ndarray, near: np.ndarray, covered: np.ndarray, scale: float) -> np.ndarray:
    """Darken each pixel by how far it lies behind its neighbours, at two radii."""
    height, width = near.shape
    floor = near[covered].min()
    filled = np.where(covered, near, floor)
    padded = np.pad(filled, 6, mode="edge")
    behind = np.zeros_like(filled)
    for radius in (2, 6):
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            top, left = 6 + radius * dy, 6 + radius * dx
            apart = padded[top : top + height, left : left + width] - filled
            behind += np.clip(apart, 0, scale, out=apart)
    shade = np.exp(behind * (-1.4 / (8 * scale)))
    fade = (filled - floor) / max(float(np.ptp(filled)), 1e-9)  # what is far is a little paler
    lit = image * shade[..., None]
    lit += (1 - lit) * (0.28 * (1 - fade))[..., None]
    return np.where(covered[..., None], lit, image)
