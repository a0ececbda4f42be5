"""A progress bar with the time left."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")


def progress(items: Iterable[Item], words: str, total: int) -> Iterator[Item]:
    """The items, with a bar on stderr that shows how many of `total` are done, time taken and time left."""
    if total == 0:
        return
    columns = (
        TextColumn(words),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("after"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
        yield from bar.track(items, total=total)
