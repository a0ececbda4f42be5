"""Pictures of a registration: both clouds before and after, and how far apart they lie where they overlap.

Points are drawn by our own small renderer, because matplotlib sorts scatter points by depth but gives
no sense of it. Parallel projection, nearest point first, then eye-dome lighting (Boucheny, PhD thesis,
Grenoble 2009): a pixel is darker the further it lies behind its neighbours, so that edges stand out
without normals or lamps.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pcreg.files import replacing
from pcreg.geometry import se3, transform
from pcreg.residual import residual_colors, residuals

SOURCE = np.array([245, 146, 52]) / 255  # orange
TARGET = np.array([31, 126, 176]) / 255  # blue
BACKGROUND = np.array([1.0, 1.0, 1.0])
SIZE = (900, 580)  # pixels of a view
MOST_POINTS = 300_000  # drawn of a cloud; more change no pixel


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
    from matplotlib.figure import Figure

    source, target = (_some(points) for points in (source, target))
    distance = residuals(source, target, T_target_source, limit)
    view = principal_axes(target) if T_view_target is None else T_view_target
    target = transform(view, target)
    before = transform(view, source)
    after = transform(view, transform(T_target_source, source))
    low, below = after[:, 2] < ceiling, target[target[:, 2] < ceiling]
    shared = residual_colors(distance[low], limit)
    columns = {
        "before": ([before[low], below], [SOURCE, TARGET]),
        "after": ([after[low], below], [SOURCE, TARGET]),
        f"source by distance to target, 0 to {limit:.2g} m": ([after[low]], [shared]),
    }
    cameras = (from_above(), from_the_side()) if cameras is None else cameras
    figure = Figure(figsize=(18, 1 + 4 * len(cameras)), dpi=100, facecolor=BACKGROUND)
    axes = figure.subplots(len(cameras), len(columns), squeeze=False)
    for column, (name, drawn) in zip(axes.T, columns.items(), strict=True):
        for place, camera in zip(column, cameras, strict=True):
            place.imshow(render(*drawn, camera, size=SIZE, splat=4), interpolation="lanczos")
            place.set_axis_off()
        column[0].set_title(name, fontsize=15, color="0.35", pad=4)
    figure.suptitle(title, fontsize=16, y=0.985)
    for x, name, color in ((0.46, "source", SOURCE), (0.54, "target", TARGET)):
        figure.text(x, 0.016, f"●  {name}", fontsize=14, color=color, ha="center")
    figure.subplots_adjust(left=0.005, right=0.995, top=0.89, bottom=0.045, wspace=0.02, hspace=0.02)
    with replacing(path) as temporary:
        figure.savefig(temporary)


def _some(points: np.ndarray) -> np.ndarray:
    """Every n-th point, at most MOST_POINTS of them."""
    return points[:: max(1, -(-len(points) // MOST_POINTS))]


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
    from scipy.ndimage import maximum_filter

    width, height = size
    points = np.concatenate(clouds) @ camera.T  # right, up, towards the viewer
    paint = np.concatenate(
        [np.broadcast_to(c, (len(each), 3)) for each, c in zip(clouds, colors, strict=True)]
    )
    if len(points) == 0:
        return np.tile(BACKGROUND, (height, width, 1))
    low, high = points.min(0), points.max(0)
    extent = np.maximum(high - low, 1e-9)
    scale = 0.96 * min(width / extent[0], height / extent[1])
    corner = np.array([width, height]) / 2 - scale * (low + high)[:2] / 2
    column, row = np.floor(points[:, :2] * scale + corner).astype(np.int64).T
    row = height - 1 - row

    rank = np.full((height, width), -1)  # of the point seen, counted from the furthest; -1: none
    order = np.argsort(points[:, 2], kind="stable")
    np.maximum.at(rank, (row[order], column[order]), np.arange(len(order)))
    seen = order[rank := maximum_filter(rank, splat)]
    covered = rank >= 0
    near = np.where(covered, points[seen, 2], -np.inf)  # distance towards the viewer
    image = np.where(covered[..., None], paint[seen], BACKGROUND)
    return _eye_dome(image, near, depth_scale * extent[:2].max())


def _eye_dome(image: np.ndarray, near: np.ndarray, scale: float) -> np.ndarray:
    """Darken each pixel by how far it lies behind its neighbours, at two radii."""
    covered = np.isfinite(near)
    floor = near[covered].min() if covered.any() else 0.0
    filled = np.where(covered, near, floor)
    behind = np.zeros_like(filled)
    for radius in (2, 6):
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            neighbour = np.roll(filled, (radius * dy, radius * dx), axis=(0, 1))
            behind += np.clip(neighbour - filled, 0, scale)
    shade = np.exp(-behind / (8 * scale) * 1.4)
    fade = (filled - floor) / max(float(np.ptp(filled)), 1e-9)  # what is far is a little paler
    lit = image * shade[..., None]
    lit += (1 - lit) * (0.28 * (1 - fade))[..., None]
    return np.where(covered[..., None], lit, image)
