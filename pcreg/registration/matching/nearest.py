"""Nearest-neighbour matching of feature rows, exact, in bounded memory and, of very many rows, bounded time.

Features (N, C) and (M, C) are arrays or tensors; the work is done where the tensors live. Rows of
the index pairs returned refer to rows of the features, so they index the points as well. Equal
distances go to the lower index.
"""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from pcreg.features.base import Description
from pcreg.geometry.subsample import every_nth
from pcreg.runtime import parallel

if TYPE_CHECKING:
    import torch

Features: TypeAlias = "np.ndarray | torch.Tensor"

log = logging.getLogger(__name__)

MAX_PRODUCTS = 10**10  # of numbers, to compare all rows of a with all of b; a second or two on two cores
MIN_COLUMNS = 40  # that projected features keep
MAX_COMPARED_PAIRS = 50_000**2  # of rows, each way; clouds of up to 50,000 points are matched whole
MIN_KEYPOINTS = 5_000  # of the smaller cloud, however large the other is; papers evaluate with as many
MAX_ONE_WAY = 2_000  # matches that motions are proposed from, beside the mutual ones
MAX_BLOCK_BYTES = 1 << 20  # of the distance matrix in memory at a time; a core's cache should hold it
BLOCK_ROWS = 256  # of such a block
MAX_DEVICE_BLOCK_BYTES = 1 << 30  # the same on a GPU, whose host takes as long to launch a small block


@dataclass(frozen=True)
class Matches:
    """Row n of the confidences belongs to row n of the index pairs."""

    rows: np.ndarray  # (P, 2) int64, of source and target; no row is in two pairs of one way to match
    confidence: np.ndarray | None = None  # (P,) float32, from 0 to 1; None: all are alike
    one_way: np.ndarray | None = None  # (N, 2) int64, rows of one cloud with their nearest, if known

    def of_rows(self, rows: np.ndarray) -> "Matches":
        """The matches in these rows (N,) alone."""
        return Matches(self.rows[rows], None if self.confidence is None else self.confidence[rows])

    def further_points(self, source: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Points (K, 3) and (K, 3) of the matches and of one-way ones, of the clouds (N, 3) and (M, 3)."""
        if self.one_way is None:
            return None
        both = every_nth(self.rows, MAX_ONE_WAY), every_nth(self.one_way, MAX_ONE_WAY)
        of_source, of_target = np.concatenate(both).T
        of_source, of_target = np.divmod(np.unique(of_source * len(target) + of_target), len(target))
        return source[of_source], target[of_target]


class Matcher(Protocol):
    """What evaluation needs of a matcher."""

    name: str
    fingerprint: str  # changes with anything learned that the matches depend on; "" if nothing is

    def match(self, source: Description, target: Description, voxel: float) -> Matches:
        """Matches of clouds described at a `voxel` size in metres; the same clouds give the same matches."""
        ...


class Nearest:
    """Descriptors that are each other's nearest: all are compared, nothing is learned of the other cloud."""

    name, fingerprint = "nearest", ""

    def match(self, source: Description, target: Description, voxel: float) -> Matches:
        one_way = nearest_neighbors(source.features, target.features)
        return Matches(keep_mutual(one_way, source.features, target.features), one_way=one_way)


def nearest(features_a: Features, features_b: Features, max_block_bytes: int | None = None) -> np.ndarray:
    """For each row of a (N, C) its nearest row of b (M, C) by Euclidean distance, M >= 1: (N,) int64."""
    return _on_host(_nearest(features_a, features_b, max_block_bytes))


def _nearest(features_a: Features, features_b: Features, max_block_bytes: int | None = None) -> Features:
    """As `nearest`; of features on a GPU the rows are there, and not waited for."""
    a, b = _constant(features_a), _constant(features_b)
    # Moving both keeps the distances, and small differences of large histograms keep their digits;
    # rounded, the move is none for unit vectors.
    centre = b.mean(0).round()
    a, b = a - centre, b - centre
    # |a - b|^2 = |a|^2 - 2 (a.b - |b|^2 / 2): the same |a|^2 for every b, the rest one product.
    half = (b * b).sum(1) / 2
    log.info("match: %d points with %d", len(a), len(b))
    if isinstance(a, np.ndarray):
        return _highest_of_arrays(a, b, half, max_block_bytes or MAX_BLOCK_BYTES)
    rows = max(1, (max_block_bytes or MAX_DEVICE_BLOCK_BYTES) // (half.itemsize * len(b)))
    import torch

    return torch.cat([(some @ b.T).sub_(half).argmax(1) for some in a.split(rows)])


def _highest_of_arrays(a: np.ndarray, b: np.ndarray, half: np.ndarray, max_block_bytes: int) -> np.ndarray:
    """For each row of a (N, C) that row of b (M, C) whose product with it less `half` (M,) is highest: (N,).

    Block by block of rows and columns. The products are written once: `half` is one more column of them.
    """
    a, b = np.column_stack([a, np.ones(len(a), a.dtype)]), np.column_stack([b, -half])
    columns = max(1, max_block_bytes // (half.itemsize * BLOCK_ROWS))
    parts = [b[start : start + columns].T for start in range(0, len(b), columns)]

    def block(start: int) -> np.ndarray:
        log.debug("match: %.0f %% of %d points with %d", 100 * start / len(a), len(a), len(b))
        some = a[start : start + BLOCK_ROWS]
        every = np.arange(len(some))
        rows = np.empty((len(parts), len(some)), np.int64)
        highest = np.empty((len(parts), len(some)), a.dtype)
        for number, part in enumerate(parts):
            scores = some @ part
            rows[number] = scores.argmax(1)
            highest[number] = scores[every, rows[number]]
        best = highest.argmax(0)
        return best * columns + rows[best, every]

    with parallel.one_for_blas():
        return np.concatenate(parallel.each(block, range(0, len(a), BLOCK_ROWS)))


def _constant(features: Features) -> Features:
    """The features without a gradient, and on the CPU as an array.

    NumPy finds maxima there five times as fast; and this module gets on without importing PyTorch.
    """
    if isinstance(features, np.ndarray):
        return features
    return features.detach().numpy() if _is_on_cpu(features) else features.detach()


def _on_host(rows: Features) -> np.ndarray:
    return rows if isinstance(rows, np.ndarray) else rows.cpu().numpy()


def _is_on_cpu(features: "torch.Tensor") -> bool:
    return features.device.type == "cpu"


def nearest_neighbors(
    features_a: Features, features_b: Features, max_block_bytes: int | None = None
) -> np.ndarray:
    """Index pairs (N, 2) int64: every row of a with its nearest row of b. (0, 2) if either is empty."""
    if len(features_a) == 0 or len(features_b) == 0:
        return np.empty((0, 2), dtype=np.int64)
    to_b = nearest(features_a, features_b, max_block_bytes)
    return np.stack([np.arange(len(to_b)), to_b], axis=1)


def keep_mutual(
    pairs: np.ndarray, features_a: Features, features_b: Features, max_block_bytes: int | None = None
) -> np.ndarray:
    """Of the pairs (P, 2) of rows of a with their nearest rows of b those that are each other's nearest."""
    if len(pairs) == 0:
        return pairs
    back = _nearest_of(pairs[:, 1], features_b, features_a, max_block_bytes)
    return pairs.compress(_on_host(back) == pairs[:, 0], axis=0)


def _nearest_of(
    rows: Features, features_a: Features, features_b: Features, max_block_bytes: int | None = None
) -> Features:
    """For `rows` (P,) of a their nearest rows of b (P,), where the given ones are; each is compared once."""
    is_array = isinstance(rows, np.ndarray)
    is_one = np.zeros(len(features_a), bool) if is_array else rows.new_zeros(len(features_a), dtype=bool)
    is_one[rows] = True
    some = is_one.nonzero()[0] if is_array else is_one.nonzero()[:, 0]
    found = _nearest(features_a[some], features_b, max_block_bytes)
    return found[(is_one.cumsum(0) - 1)[rows]]


def match_within_bound(features_a: Features, features_b: Features) -> Matches:
    """Mutual matches and one-way ones; of very many rows those of keypoints of the smaller side.

    So many keypoints that no more than 50,000^2 pairs of rows are compared each way, but no fewer than 5,000:
    time is that of two clouds of 50,000 points, and beyond 500,000 points grows as the larger cloud does.
    Keypoints are evenly spaced rows. Where rows are in the order of cells of a grid, as
    pcreg.geometry.voxel_grid gives them, keypoints are spread evenly over the cloud.
    """
    if len(features_a) > len(features_b):
        found = match_within_bound(features_b, features_a)
        rows, one_way = found.rows[:, ::-1], found.one_way[:, ::-1]
        return Matches(rows[np.argsort(rows[:, 0])], one_way=one_way)
    if len(features_a) == 0:
        return Matches(np.empty((0, 2), dtype=np.int64), one_way=np.empty((0, 2), dtype=np.int64))
    keypoints = _keypoints(len(features_a), len(features_b))
    some = features_a if len(keypoints) == len(features_a) else features_a[keypoints]
    to_b = _nearest(some, features_b)
    back = _nearest_of(to_b, features_b, features_a)  # on a GPU before the first are waited for
    one_way = np.stack([keypoints, _on_host(to_b)], axis=1)
    return Matches(one_way.compress(_on_host(back) == keypoints, axis=0), one_way=one_way)


def _keypoints(smaller: int, larger: int) -> np.ndarray:
    """Which rows (K,) of the smaller side to match with the larger."""
    count = min(max(MAX_COMPARED_PAIRS // max(larger, 1), MIN_KEYPOINTS), smaller)
    return np.arange(count) * smaller // max(count, 1)


def pca_project(features_a: Features, features_b: Features) -> tuple[Features, Features]:
    """Features (N, C) and (M, C) in their common principal directions, where there are many of both.

    Descriptors at several scales are correlated, and comparing 20,000 rows of 96 numbers with as many takes
    twice as long as of 32. Of two LiDAR scans 40 directions keep 96 % of the squared norm, and 131 of 143
    right matches.
    """
    columns = max(MIN_COLUMNS, MAX_PRODUCTS // max(len(features_a) * len(features_b), 1))
    if columns >= features_a.shape[1]:
        return features_a, features_b
    with parallel.one_for_blas():
        spread = features_a.T @ features_a + features_b.T @ features_b
        on_host = spread if isinstance(spread, np.ndarray) else spread.cpu().numpy()
        directions = np.linalg.eigh(on_host).eigenvectors[:, -columns:]
        if not isinstance(spread, np.ndarray):
            directions = spread.new_tensor(directions)
        return features_a @ directions, features_b @ directions
