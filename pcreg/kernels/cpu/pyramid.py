"""All neighbourhoods that a network needs for a batch, with a single search of the finest level."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pcreg.kernels.cpu.neighbors import Rows, from_both_ends, in_order, pairs_within, surface_normals
from pcreg.kernels.cpu.stencil import counts, neighbours, neighbours_within
from pcreg.kernels.pyramid_config import KERNEL_SIZE, PyramidConfig

Unsorted = tuple[Rows, Rows, Rows]  # i, j and k (T,) of triplets, in no particular order


def search_levels(
    levels: Sequence[np.ndarray],
    lengths: Sequence[np.ndarray],
    rows: Sequence[Rows],
    viewpoints: np.ndarray | None,
    config: PyramidConfig,
) -> tuple[NDArray[np.int32], Iterator[Unsorted], Iterator[Unsorted]]:
    """Search points (N, 3) of each level, of B clouds with lengths (B,).

    With `snap` the points are corners of voxels. For each level but the first, `rows` holds the rows of its
    points in the level before. `viewpoints` (N, 3) of the first level are for point-pair kernels.

    Returns the number (K, N) of points in each cell of the first layer's kernels, the triplets of each level
    onto itself, and the triplets of each level onto the next. The iterators search as they advance.
    """
    cube, is_ppf = config.snap, config.kernel == "ppf"
    stem_size, stem_radius = config.size_and_radius(0, config.stem_kernel_size)
    reach = max(config.size_and_radius(0)[1], stem_radius, config.normal_radius if is_ppf else 0)
    pairs, count = pairs_within(levels[0], lengths[0], reach, cube), len(levels[0])
    normals: list[np.ndarray] = []
    if is_ppf:
        near = in_order(*from_both_ends(pairs.within(config.normal_radius), count), count)
        normals.append(surface_normals(levels[0], viewpoints, *near))
        for picked in rows:
            normals.append(normals[-1][picked])
    own = normals[0] if is_ppf else None

    def onto(out: int, into: int) -> Unsorted:
        size, radius = config.size_and_radius(into)
        if out == 0:
            return neighbours_within(pairs.within(radius, cube), count, size, KERNEL_SIZE, radius, own)
        both = (normals[out], normals[into]) if is_ppf else None
        clouds = levels[out], levels[into], lengths[out], lengths[into]
        return neighbours(*clouds, size, KERNEL_SIZE, radius, both, cube)

    kernel = stem_size, config.stem_kernel_size, stem_radius
    stem = counts(pairs.within(stem_radius, cube), count, *kernel, own)
    same = (onto(level, level) for level in range(config.n_levels))
    return stem, same, (onto(level + 1, level) for level in range(config.n_levels - 1))
