"""Where the time went."""

from time import perf_counter


class Clock:
    """Seconds by step, added up over the attempts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, step: str) -> None:
        now = perf_counter()
        self.seconds[step] = round(self.seconds.get(step, 0.0) + now - self._last, 4)
        self._last = now

    def add(self, seconds: dict[str, float]) -> None:
        """Add what other clocks measured."""
        for step, value in seconds.items():
            self.seconds[step] = round(self.seconds.get(step, 0.0) + value, 4)
