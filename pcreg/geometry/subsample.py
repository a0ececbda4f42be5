"""Fewer rows where not all are needed."""

from typing import Any, Protocol, TypeVar


class Sliceable(Protocol):
    """An array or a tensor."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> Any: ...


Rows = TypeVar("Rows", bound=Sliceable)


def every_nth(rows: Rows, max_rows: int) -> Rows:
    """Every n-th of the rows (N, ...), n being the least with which no more than `max_rows` are left."""
    some: Rows = rows[:: max(1, -(-len(rows) // max_rows))]
    return some
