"""A registration as plain values, with what it was computed from."""

from dataclasses import dataclass
from typing import Any

from pcreg.registration.result import Registration
from pcreg.runtime import VERSION


@dataclass(frozen=True)
class Task:
    """What was asked for."""

    files: tuple[str, str]  # source and target, as given
    units: tuple[str, str]  # of their coordinates
    descriptor: str
    seed: int


def facts(registration: Registration, task: Task) -> dict[str, Any]:
    """The figures of a registration and what they were computed with, as plain values."""
    return {
        "source": task.files[0],
        "target": task.files[1],
        **registration.to_dict(),
        "units": list(task.units),
        "descriptor": task.descriptor,
        "seed": task.seed,
        "version": VERSION,
    }
