"""Points that are read in parts, in memory that grows with their number, whatever a header promises."""

import numpy as np

FIRST_ROWS = 1 << 12  # allocated at first


class GrowingPoints:
    """Points (N, 3) float64, N at most `promised`."""

    def __init__(self, promised: int):
        self._promised = promised
        self._rows = np.empty((min(promised, FIRST_ROWS), 3))
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def append(self, part: np.ndarray) -> None:
        """Add the points (M, 3); ValueError if they are then more than promised."""
        filled = self._filled + len(part)
        if filled > self._promised:
            raise ValueError(f"it holds more than the {self._promised} points that it promises")
        if filled > len(self._rows):
            room = min(max(filled, 3 * len(self._rows) // 2), self._promised)
            self._rows.resize((room, 3), refcheck=False)  # in place where the system can
        self._rows[self._filled : filled] = part
        self._filled = filled

    def points(self) -> np.ndarray:
        """What was appended (N, 3)."""
        return self._rows[: self._filled]
