"""Which scans to compare where they are too many to compare each with each: those described alike.

Work grows with the number of scans times the number of candidates of each.
"""

from collections.abc import Sequence

import numpy as np

from pcreg.registration.global_descriptor import GlobalDescriptor
from pcreg.registration.screening import Sketch

MAX_SCANS = 100  # up to which each is compared with each
CANDIDATES = 20  # of a scan otherwise; of pairs of simulated rooms that register 97 % are among 10


def candidates(sketches: Sequence[Sketch]) -> list[tuple[int, int]]:
    """The pairs of scans (source, target) to screen, source > target, ascending."""
    n = len(sketches)
    if n <= MAX_SCANS:
        return [(source, target) for source in range(n) for target in range(source)]
    described = GlobalDescriptor.learned(sketches)
    whole = np.stack([described.describe(sketch) for sketch in sketches])
    likeness = whole @ whole.T
    np.fill_diagonal(likeness, -np.inf)
    nearest = np.argpartition(-likeness, CANDIDATES, axis=1)[:, :CANDIDATES]
    pairs = {(max(row, other), min(row, other)) for row in range(n) for other in nearest[row].tolist()}
    return sorted(pairs)
