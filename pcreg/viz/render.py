"""Orthographic views of coloured points, drawn with NumPy.

The nearest point of each pixel is drawn, with eye-dome lighting (Boucheny, PhD thesis, Grenoble 2009): a
pixel is darker the further it lies behind its neighbours, so that edges stand out without normals or lamps.
"""

import numpy as np

BACKGROUND = np.array([1.0, 1.0, 1.0])
# Pixels to the neighbours that shade a pixel
NEIGHBORS = ((2, 0), (-2, 0), (0, 2), (0, -2), (5, 5), (5, -5), (-5, 5), (-5, -5))
DEPTH_SCALE = 0.02  # of the picture's extent
# Cameras: rows right, up and towards the viewer (3, 3)
ABOVE = np.eye(3)  # looks straight down, x to the right
SIDE = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])  # along y, z up
FRONT = np.array([[0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]])  # along -x, z up


def render(
    clouds: list[np.ndarray],
    colors: list[np.ndarray],
    camera: np.ndarray,
    *,
    size: tuple[int, int],
    splat: int,
    frame: np.ndarray | None = None,
) -> np.ndarray:
    """RGB image (height, width, 3) in 0..1 of clouds in colours (3,) or (N, 3).

    `frame` (2, 2) is the lower and upper corner, right and up, of the area that is drawn, by default that of
    all points. A point covers splat x splat pixels. A pixel that lies DEPTH_SCALE of the picture's extent
    or more behind all its neighbours is darkened to a quarter.
    """
    width, height = size
    right, up, near = np.concatenate(clouds, dtype=np.float32).dot(camera.T.astype(np.float32)).T
    paint = np.concatenate(
        [np.broadcast_to(np.float32(c), (len(each), 3)) for each, c in zip(clouds, colors, strict=True)]
    )
    if frame is not None:
        (left, bottom), (end, top) = frame
        kept = (right > left) & (right < end) & (up > bottom) & (up < top)
        right, up, near, paint = right[kept], up[kept], near[kept], paint[kept]
    if len(paint) == 0:
        return np.tile(np.float32(BACKGROUND), (height, width, 1))
    if frame is None:
        left, end, bottom, top = right.min(), right.max(), up.min(), up.max()
    wide, high, deep = (max(float(extent), 1e-9) for extent in (end - left, top - bottom, np.ptp(near)))
    scale = (0.96 if frame is None else 1) * min(width / wide, height / high)
    column = ((right - left) * scale + (width - scale * wide) / 2).astype(np.int64)
    row = height - 1 - ((up - bottom) * scale + (height - scale * high) / 2).astype(np.int64)

    # A pixel keeps its largest key, of its nearest point: nearness in the upper 32 bits, row in the lower.
    key = ((near - near.min()) * (2**30 / deep)).astype(np.int64) << 32
    key += np.arange(len(key))
    seen = np.full(height * width, -1)
    np.maximum.at(seen, row.clip(0, height - 1) * width + column.clip(0, width - 1), key)
    seen = _spread(seen.reshape(height, width), splat)
    covered = seen >= 0
    seen &= 0xFFFFFFFF
    seen[~covered] = 0
    drawn = np.where(covered, paint.T.take(seen, axis=1), np.float32(BACKGROUND)[:, None, None])
    _eye_dome(drawn, near[seen], covered, np.float32(DEPTH_SCALE * max(wide, high)))
    return drawn.transpose(1, 2, 0)


def _spread(image: np.ndarray, size: int) -> np.ndarray:
    """Largest value among the size x size pixels around each pixel of an image with values from -1."""
    for _ in range(2):
        padded = np.pad(image, ((size // 2, size - 1 - size // 2), (0, 0)), constant_values=-1)
        largest = padded[: len(image)].copy()
        for shift in range(1, size):
            np.maximum(largest, padded[shift : shift + len(image)], out=largest)
        image = np.ascontiguousarray(largest.T)
    return image


def _eye_dome(image: np.ndarray, near: np.ndarray, covered: np.ndarray, scale: float) -> None:
    """Darken pixels of an image (3, height, width) by their depth behind neighbours, and fade far ones."""
    floor = near[covered].min()
    filled = np.where(covered, near, floor)
    padded = np.pad(filled, 5, mode="edge")
    behind, depth = np.zeros_like(filled), np.empty_like(filled)
    height, width = filled.shape
    for left, top in NEIGHBORS:
        np.subtract(padded[5 + top :, 5 + left :][:height, :width], filled, out=depth)
        behind += np.clip(depth, 0, scale, out=depth)
    lit = image * np.exp(behind * (-1.4 / (len(NEIGHBORS) * scale)))
    lit += (0.28 - 0.28 * (filled - floor) / max(float(np.ptp(filled)), 1e-9)) * (1 - lit)
    np.copyto(image, lit, where=covered)
