"""Rows of numbers, wherever they are."""

from typing import Protocol


class Rows(Protocol):
    """An array (N, C), or what becomes one when NumPy asks, such as pcreg.models.device_rows.DeviceRows."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...
