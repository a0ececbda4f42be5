"""Rows of numbers, wherever they are."""

from typing import Protocol


class Rows(Protocol):
    """An array or a tensor (N, C)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...
