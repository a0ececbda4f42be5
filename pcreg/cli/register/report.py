"""What `register` prints about two clouds."""

import sys
from pathlib import Path

import numpy as np

from pcreg.features.base import Descriptor
from pcreg.io.cloud import Cloud
from pcreg.registration.result import Registration
from pcreg.viz import files as output


def print_clouds(files: tuple[str, str], clouds: tuple[Cloud, Cloud]) -> None:
    for file, cloud in zip(files, clouds, strict=True):
        print(f"{file}: {len(cloud.points)} points, {cloud.dropped} rows dropped (NaN, infinite or outliers)")


def print_scale(descriptor: Descriptor, *, is_chosen: bool) -> None:
    """The descriptor and its voxel size, which is `is_chosen` from the clouds or given."""
    print(f"descriptor: {descriptor.label}")
    print(f"voxel {descriptor.voxel:g} m" + (" (--voxel changes it)" if is_chosen else ""))


def print_verdict(registration: Registration) -> None:
    """Print motion and verdict and flush, since later steps may fail."""
    print(f"\nT_target_source =\n{pasteable(registration.T_target_source)}\n")
    if registration.scale != 1.0:
        print(f"scale {registration.scale:.6g}, at voxel {registration.voxel:g} m")
    verdict = "registered" if registration.registered else "NOT registered"
    print(f"{verdict}, confidence {registration.confidence:.2f}: {registration.reason}")
    if registration.alternative is not None:
        print(f"about as likely, T_target_source =\n{pasteable(registration.alternative)}")
    for note in registration.notes:
        print(f"note: {note}")
    sys.stdout.flush()


def print_files(clouds: tuple[Cloud, Cloud], paths: list[Path], seconds: dict[str, float]) -> None:
    steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
    print(f"seconds: {steps}; total {sum(seconds.values()):.2f}")
    print(f"written: {', '.join(map(str, paths))}")
    for side, cloud in zip(("source", "target"), clouds, strict=True):
        if (step := output.stride(cloud.points)) > 1:
            print(f"aligned.ply holds one of {step} points of the {side}, which has {len(cloud.points)}")


def pasteable(T: np.ndarray) -> str:
    """The rows of a motion (4, 4), to be pasted into Python."""
    rows = (", ".join(f"{value: .9f}" for value in row) for row in T)
    return "[" + ",\n ".join(f"[{row}]" for row in rows) + "]"
