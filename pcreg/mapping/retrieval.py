"""Which scans to compare where they are too many to compare each with each, and which maps.

Work grows with the number of scans times the number of candidates of each.
"""

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
        """How much each two scans are alike as a whole, (n, n)."""
        described = GlobalDescriptor.learned(self.keypoints)
        whole = np.stack([described.describe(keypoints) for keypoints in self.keypoints])
        return whole @ whole.T

    def candidates(self) -> list[tuple[int, int]]:
        """Each scan with those most like it; with all of them if the scans are few."""
        n = len(self.keypoints)
        others = ~np.eye(n, dtype=bool)
        return _pairs(others if n <= MAX_SCANS else self._most_alike(others))

    def further_candidates(
        self, component: np.ndarray, inliers: np.ndarray, screened: np.ndarray
    ) -> list[tuple[int, int]]:
        """Pairs that were not `screened` (n, n), between maps that may belong together.

        Two parts of a place may overlap in one pair of scans alone, which likeness among all scans misses.
        `component` (n,) is the map of each scan, `inliers` (n, n) what agrees at screening.
        """
        chosen = np.zeros_like(screened)
        for smaller, larger in map_pairs(component, inliers):
            chosen |= self._most_alike(np.outer(component == smaller, component == larger) & ~screened)
        return _pairs(chosen)

    def _most_alike(self, possible: np.ndarray) -> np.ndarray:
        """Those of each scan, in its row, that are most like it among the `possible` ones: (n, n) bool."""
        chosen = np.zeros_like(possible)
        for row in np.flatnonzero(possible.any(1)):
            likeness = np.where(possible[row], self.likeness[row], -np.inf)
            chosen[row, np.argsort(-likeness, kind="stable")[:CANDIDATES]] = True
        return chosen & possible


def map_pairs(component: np.ndarray, inliers: np.ndarray) -> list[tuple[int, int]]:
    """Which maps to compare, each with larger ones, by the agreeing matches (n, n) of their scans.

    `component` (n,) is the map of each scan. Larger maps come first.
    """
    order = np.argsort(-np.bincount(component), kind="stable").tolist()
    pairs = []
    for place, smaller in enumerate(order):
        own = inliers[component == smaller]
        agree = {larger: own[:, component == larger].max() for larger in order[:place]}
        agree = {larger: count for larger, count in agree.items() if count > 0}
        best = sorted(agree, key=lambda larger: (-agree[larger], larger))[:MAX_TARGETS]
        pairs += [(smaller, larger) for larger in best]
    return pairs


def _pairs(chosen: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of which either is chosen, (n, n)."""
    sources, targets = np.nonzero(np.tril(chosen | chosen.T))
    return list(zip(sources.tolist(), targets.tolist(), strict=True))
