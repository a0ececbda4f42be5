"""Pairs of scans to screen, and pairs of maps to compare.

Work grows with the number of scans times the number of candidates of each.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pcreg.registration.matching.global_descriptor import GlobalDescriptor
from pcreg.registration.matching.screening import Keypoints
from pcreg.runtime.cached_property import cached_property

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 20  # of a scan otherwise; of pairs of simulated rooms that register 97 % are among 10
MAX_TARGETS = 3  # maps with which one is compared


@dataclass(frozen=True)
class Retrieval:
    """Pairs of scans (source, target) to screen, source > target, ascending."""

    keypoints: Sequence[Keypoints]

    @cached_property
    def likeness(self) -> np.ndarray:
        """Similarity of the global descriptors of each two scans, (n, n)."""
        described = GlobalDescriptor.learned(self.keypoints)
        whole = np.stack([described.describe(keypoints) for keypoints in self.keypoints])
        return whole @ whole.T

    def candidates(self) -> list[tuple[int, int]]:
        """Each scan with those most like it; with all of them if the scans are few."""
        n = len(self.keypoints)
        if n <= MAX_SCANS:
            return list(zip(*(rows.tolist() for rows in np.tril_indices(n, -1)), strict=True))
        rows = np.arange(n)
        return sorted({pair for row in rows for pair in self._most_alike(row, np.delete(rows, row))})

    def further_candidates(
        self, component: np.ndarray, inliers: np.ndarray, screened: np.ndarray
    ) -> list[tuple[int, int]]:
        """Pairs that were not `screened` (n, n), between maps that may belong together.

        Two parts of a place may overlap in one pair of scans alone, which likeness among all scans misses.
        `component` (n,) is the map of each scan, `inliers` (n, n) the agreeing matches at screening.
        """
        chosen = set()
        for smaller, larger in map_pairs(component, inliers):
            others = np.flatnonzero(component == larger)
            for row in np.flatnonzero(component == smaller):
                chosen |= self._most_alike(row, others[~screened[row, others]])
        return sorted(chosen)

    def _most_alike(self, row: int, others: np.ndarray) -> set[tuple[int, int]]:
        """Pairs of a scan with those of the others (K,) that are most like it."""
        best = others[np.argsort(-self.likeness[row, others], kind="stable")[:CANDIDATES]]
        return {(max(int(row), other), min(int(row), other)) for other in best.tolist()}


def map_pairs(component: np.ndarray, inliers: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of maps to compare (smaller, larger), by the agreeing matches (n, n) of their scans.

    `component` (n,) is the map of each scan. Larger maps come first.
    """
    order = np.argsort(-np.bincount(component), kind="stable")
    place = np.argsort(order)
    agree: dict[int, dict[int, int]] = defaultdict(dict)
    rows, columns = np.nonzero(inliers)
    ends = component[rows], component[columns], inliers[rows, columns]
    for smaller, larger, count in zip(*(each.tolist() for each in ends), strict=True):
        if place[smaller] > place[larger]:
            agree[smaller][larger] = max(count, agree[smaller].get(larger, 0))
    return [
        (smaller, larger)
        for smaller in order.tolist()
        for larger in sorted(agree[smaller], key=lambda each: (-agree[smaller][each], each))[:MAX_TARGETS]
    ]
