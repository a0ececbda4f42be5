"""A registration as plain values, with what it was computed from."""

from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from pcreg.registration.result import Registration


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
        "registered": registration.registered,
        "confidence": registration.confidence,
        "reason": registration.reason,
        "notes": list(registration.notes),
        "T_target_source": registration.T_target_source.tolist(),
        "inliers": registration.inliers,
        "overlap": registration.overlap,
        "rmse": registration.rmse,
        "evidence": asdict(registration.evidence),
        "alternative": None if registration.alternative is None else registration.alternative.tolist(),
        "viewpoints": {
            side: None if viewpoint is None else viewpoint.tolist()
            for side, viewpoint in zip(("source", "target"), registration.viewpoints, strict=True)
        },
        "units": list(task.units),
        "descriptor": task.descriptor,
        "voxel": registration.voxel,
        "seed": task.seed,
        "version": version("pcreg"),
    }
