"""Which scans to compare where they are too many to compare each with each: those described alike.

Work grows with the number of scans times the number of candidates of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pcreg.registration.global_descriptor import GlobalDescriptor
from pcreg.registration.screening import Sketch

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 20  # of a scan otherwise; of pairs of simulated rooms that register 97 % are among 10


@dataclass(frozen=True)
class Retrieval:
    """Pairs of scans (source, target) to screen, source > target, ascending."""

    sketches: Sequence[Sketch]

    @cached_property
    def likeness(self) -> np.ndarray:
        """How much each two scans are alike as a whole, (n, n)."""
        described = GlobalDescriptor.learned(self.sketches)
        whole = np.stack([described.describe(sketch) for sketch in self.sketches])
        return whole @ whole.T

    def candidates(self) -> list[tuple[int, int]]:
        """Each scan with those most like it; with all of them if the scans are few."""
        n = len(self.sketches)
        others = ~np.eye(n, dtype=bool)
        return _pairs(others) if n <= MAX_SCANS else self._most_alike(others)

    def further_candidates(
        self, component: np.ndarray, inliers: np.ndarray, screened: np.ndarray
    ) -> list[tuple[int, int]]:
        """Pairs that were not `screened` (n, n), between maps that may belong together.

        Each map is looked at with the larger one whose scans agree most with its own. Two parts of a place
        may overlap in one pair of scans alone, which the likeness among all scans misses.
        `component` (n,) is the map of each scan, `inliers` (n, n) what agrees at screening.
        """
        possible = np.zeros_like(screened)
        order = np.argsort(-np.bincount(component), kind="stable").tolist()
        for place, smaller in enumerate(order):
            own = component == smaller
            agree = [inliers[np.ix_(own, component == larger)].max() for larger in order[:place]]
            if max(agree, default=0) > 0:
                possible |= np.outer(own, component == order[int(np.argmax(agree))])
        possible &= ~screened
        return self._most_alike(possible) if possible.any() else []

    def _most_alike(self, possible: np.ndarray) -> list[tuple[int, int]]:
        """Each scan with those most like it among the `possible` (n, n) ones."""
        ranked = np.argsort(np.where(possible, -self.likeness, np.inf), axis=1, kind="stable")
        chosen = np.zeros_like(possible)
        np.put_along_axis(chosen, ranked[:, :CANDIDATES], True, axis=1)
        return _pairs(chosen & possible)


def _pairs(chosen: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of which either is chosen, (n, n)."""
    sources, targets = np.nonzero(np.tril(chosen | chosen.T))
    return list(zip(sources.tolist(), targets.tolist(), strict=True))
