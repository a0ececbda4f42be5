"""Visibility of the points of a surface from other places, by range images of the surface itself."""

from dataclasses import dataclass

import numpy as np

from pcreg.arrays import Array, every_nth, is_on_host, like, namespace, scatter_min, to_host

MAX_RAYS = 1 << 14  # computed together on the CPU, in arrays that fit the cache
GPU_MAX_RAYS = 1 << 22
FACE_CELLS = 30  # along an edge of each face of the cube that is the range image: 3 degrees
WIDTH = 1.5 * np.radians(90.0) / FACE_CELLS  # from the middle of a cell to the far edge of the next
MIN_INCIDENCE_COSINE = 0.3  # below it a surface is seen edge-on


@dataclass(frozen=True)
class View:
    """Visibility of a surface from other places."""

    surface: Array  # (N, 3) float64, metres
    normals: Array  # (N, 3) float64
    margin: float  # metres behind the surface, from which on points are hidden

    def of_points(self, count: int) -> "View":
        """View of `count` of the points at most."""
        return View(every_nth(self.surface, count), every_nth(self.normals, count), self.margin)

    def scores(self, places: np.ndarray) -> np.ndarray:
        """Sums (P,) of the fractions of points hidden from places (P, 3), and of those seen edge-on."""
        return self.hidden(places).sum(0)

    def hidden(self, places: np.ndarray) -> np.ndarray:
        """Fractions (2, P) of points hidden from places (P, 3), P > 0, and of those seen edge-on.

        A point is hidden if its cell of the range image and all eight around it have a nearer point. So the
        outline of an object hides nothing, as cells there also show the background. The margin grows with the
        change of range of a slanted surface within these cells.
        """
        parts = places_in_parts(places, self.surface, len(self.surface))
        return np.concatenate([self._hidden(part) for part in parts], axis=1) / len(self.surface)

    def best_directions(self, directions: np.ndarray) -> Array:
        """Row (N,) int64 of the direction (D, 3) from far along which each point is seen best.

        That is unhidden, then head-on, in range images by parallel projection with cells of half the margin.
        Of both sides of a sheet the one counts from which fewer other points are hidden.
        """
        xp, scores, cell = namespace(self.surface), [], self.margin / 2
        for direction in directions:
            across = self.surface @ like(np.linalg.svd(direction[None])[2][1:].T, self.surface)
            towards = like(direction, self.surface)
            depth, cosine = -(self.surface @ towards), xp.abs(self.normals @ towards)
            row, column = xp.astype(xp.floor((across - xp.min(across, axis=0)) / cell), xp.int64).T
            pixel = row * (int(column.max()) + 1) + column
            nearest = scatter_min(depth, pixel, int(pixel.max()) + 1)
            across_pixel = 1.5 * cell * _slope(cosine)  # 1.5 exceeds the diagonal of a cell
            behind = depth - nearest[pixel] - across_pixel
            hidden = xp.count_nonzero(behind > self.margin) / len(self.surface)
            scores.append(behind.clip(min=0) / self.margin - cosine + hidden)
        return xp.stack(scores).argmin(0)

    def _hidden(self, places: np.ndarray) -> np.ndarray:
        """Number (2, P) of points hidden, and seen edge-on, from the places (P, 3)."""
        xp = namespace(self.surface)
        rays = self.surface.T[:, None] - like(places, self.surface).T[:, :, None]  # (3, P, N)
        distance = xp.sqrt(column_dot(rays, rays))
        cosine = xp.abs(column_dot(rays, self.normals.T)) / distance.clip(min=1e-9)
        cell = _cube_cells(rays)
        nearest = scatter_min(distance, cell, len(places) * 6 * FACE_CELLS**2)
        nearest = nearest.reshape(len(places), 6, FACE_CELLS, FACE_CELLS)
        occluder = _furthest_around(nearest).reshape(-1)[cell]
        behind = distance - self.margin - distance * WIDTH * _slope(cosine) > occluder
        edge_on = cosine < MIN_INCIDENCE_COSINE
        return to_host(xp.stack([(behind & ~edge_on).sum(1), edge_on.sum(1)]))


def _slope(cosine: Array) -> Array:
    """Change of range along a surface, per metre across the ray, by its cosines of incidence (...)."""
    return namespace(cosine).sqrt(1 - cosine.clip(max=1.0) ** 2) / cosine.clip(min=MIN_INCIDENCE_COSINE)


def _furthest_around(nearest: Array) -> Array:
    """Largest of each cell of images (..., rows, columns) and the eight around it; inf at their edges."""
    xp = namespace(nearest)
    furthest = xp.full_like(nearest, xp.inf)
    rows = xp.maximum(xp.maximum(nearest[..., :-2, :], nearest[..., 1:-1, :]), nearest[..., 2:, :])
    furthest[..., 1:-1, 1:-1] = xp.maximum(xp.maximum(rows[..., :-2], rows[..., 1:-1]), rows[..., 2:])
    return furthest


def column_dot(a: Array, b: Array) -> Array:
    """Dot products (...) of vectors (3, ...)."""
    (ax, ay, az), (bx, by, bz) = a, b
    return (ax * bx + ay * by) + az * bz


def _cube_cells(rays: Array) -> Array:
    """Cells (P, N) int64, of similar angles, of rays (3, P, N) on P cubes: by cube, face, row, column."""
    xp = namespace(rays)
    x, y, z = rays
    along_x, along_y, along_z = xp.abs(rays)
    is_x = (along_x >= along_y) & (along_x >= along_z)
    is_y = ~is_x & (along_y >= along_z)
    axis = xp.where(is_x, 0, xp.where(is_y, 1, 2))
    main, *others = (xp.where(is_x, a, xp.where(is_y, b, c)) for a, b, c in ((x, y, z), (y, z, x), (z, x, y)))
    divisor = xp.abs(main).clip(min=1e-9)
    cell = 6 * xp.arange(len(axis), device=rays.device)[:, None] + 2 * axis + (main > 0)
    for other in others:
        angle = xp.atan(other / divisor)
        cell *= FACE_CELLS
        cell += xp.astype((angle / np.pi * 2 + 0.5) * FACE_CELLS, xp.int64).clip(0, FACE_CELLS - 1)
    return cell


def places_in_parts(places: np.ndarray, points: Array, count: int) -> list[np.ndarray]:
    """Split places (P, 3) into parts to compare with `count` points at once, on the device of `points`."""
    size = max(1, (MAX_RAYS if is_on_host(points) else GPU_MAX_RAYS) // count)
    return [places[start : start + size] for start in range(0, len(places), size)]
