"""Pictures of a registration: both clouds before and after, seen obliquely and from above.

Points are drawn by our own small renderer, because matplotlib sorts scatter points by depth but gives
no sense of it. Parallel projection, nearest point first, then eye-dome lighting (Boucheny, PhD thesis,
Grenoble 2009): a pixel is darker the further it lies behind its neighbours, so that edges stand out
without normals or lamps.
"""

from pathlib import Path

import numpy as np

from pcreg.files import replacing
from pcreg.geometry import transform

SOURCE = np.array([245, 146, 52]) / 255  # orange
TARGET = np.array([31, 126, 176]) / 255  # blue
BACKGROUND = np.array([1.0, 1.0, 1.0])


def overview(
    source: np.ndarray,
    target: np.ndarray,
    T_target_source: np.ndarray,
    path: str | Path,
    *,
    title: str = "",
    T_view_target: np.ndarray | None = None,
    ceiling: float = np.inf,
) -> None:
    """Write a picture of source (N, 3) and target (M, 3) before and after T_target_source, atomically.

    `T_view_target` (4, 4) takes the target into a frame whose z is up and whose axes suit the view
    from the corner -x -y; the identity if left out. Points that end up higher than `ceiling` metres
    in that frame are left out, so that one looks into a room. The suffix of `path` chooses the format.
    """
    from matplotlib.figure import Figure

    view = np.eye(4) if T_view_target is None else T_view_target
    target = transform(view, target)
    before = transform(view, source)
    after = transform(view, transform(T_target_source, source))
    figure = Figure(figsize=(16, 10.6), dpi=100, facecolor=BACKGROUND)
    columns = figure.subplots(2, 2, gridspec_kw={"height_ratios": [1.12, 1]})
    for column, (name, moved) in enumerate((("before", before), ("after", after))):
        clouds = [moved[after[:, 2] < ceiling], target[target[:, 2] < ceiling]]
        for row, camera in enumerate((oblique(), from_above())):
            axes = columns[row, column]
            axes.imshow(render(clouds, [SOURCE, TARGET], camera), interpolation="lanczos")
            axes.set_axis_off()
        columns[0, column].set_title(name, fontsize=17, color="0.35", pad=4)
    figure.suptitle(title, fontsize=19, y=0.982)
    for x, name, color in ((0.45, "source", SOURCE), (0.55, "target", TARGET)):
        figure.text(x, 0.016, f"●  {name}", fontsize=15, color=color, ha="center")
    figure.subplots_adjust(left=0.01, right=0.99, top=0.92, bottom=0.045, wspace=0.02, hspace=0.02)
    with replacing(path) as temporary:
        figure.savefig(temporary)


def oblique(azimuth: float = 35.0, elevation: float = 38.0) -> np.ndarray:
    """Rows right, up, towards the viewer (3, 3) of a camera that looks down from -x -y, in degrees."""
    a, e = np.radians([azimuth, elevation])
    towards = np.array([-np.sin(a) * np.cos(e), -np.cos(a) * np.cos(e), np.sin(e)])
    right = np.array([np.cos(a), -np.sin(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def from_above() -> np.ndarray:
    """The camera (3, 3) that looks straight down, x to the right."""
    return np.eye(3)


def render(
    clouds: list[np.ndarray],
    colors: list[np.ndarray],
    camera: np.ndarray,
    *,
    size: tuple[int, int] = (1560, 960),
    splat: int = 7,
    depth_scale: float = 0.02,
) -> np.ndarray:
    """An RGB image (height, width, 3) in 0..1 of clouds (N, 3), each in its colour (3,).

    A point covers splat x splat pixels. A pixel that lies e times `depth_scale`, a fraction of the
    picture's extent, behind the mean of its neighbours is darkened to about 1 / e.
    """
    from scipy.ndimage import maximum_filter

    width, height = size
    points = np.concatenate(clouds) @ camera.T  # right, up, towards the viewer
    owner = np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])
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
    image = np.where(covered[..., None], np.stack(colors)[owner[seen]], BACKGROUND)
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
