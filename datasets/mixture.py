"""Two data sets trained on together, so that what was learned from one is not lost to the other."""

from dataclasses import replace

import numpy as np

from pcreg.io.pairs import Pair, PairDataset, evenly
from pcreg.runtime.errors import InputError

REPLAYED = "replay:"  # before the names of the other data set's clouds


class Mixture:
    """All pairs of `own`, and so many of `replayed` that they are a `share` of the whole.

    These are spread evenly over their list, or taken several times where it is too short. Raises
    InputError for a share outside 0 to 1 and for a data set without pairs.
    """

    def __init__(self, own: PairDataset, replayed: PairDataset, share: float):
        if not 0 < share < 1:
            raise InputError(f"replay_share={share:g}: a fraction of the pairs is needed, such as 0.3")
        if not replayed.pairs:
            raise InputError("replay: the data set has no pairs; check replay.*")
        self._own, self._replayed = own, replayed
        count = round(len(own.pairs) * share / (1 - share))
        times, rest = divmod(count, len(replayed.pairs))
        drawn = times * replayed.pairs + (evenly(replayed.pairs, rest) if rest else [])
        self.pairs: list[Pair] = own.pairs + [
            replace(pair, source=REPLAYED + pair.source, target=REPLAYED + pair.target) for pair in drawn
        ]

    def cloud(self, name: str) -> np.ndarray:
        """The points (N, 3) float64 of a cloud of either data set."""
        if name.startswith(REPLAYED):
            return self._replayed.cloud(name.removeprefix(REPLAYED))
        return self._own.cloud(name)
