"""A batch that is stopped anywhere and started again ends with the records of one that was not."""

import random
import sys
from functools import cache
from inspect import CO_GENERATOR
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from pcreg.io.cloud import write_ply
from pcreg.registration import batch
from pcreg.registration.registrar import Registrar
from tests.pcreg.scenes import wavy_sheet

OURS = str(Path(batch.__file__).parent)


class Interruption:
    """Within it, Ctrl-C comes at the `last`-th call of a function of pcreg: at the same one every time."""

    def __init__(self, last: int):
        self.last, self.calls = last, 0

    def __enter__(self) -> "Interruption":
        self._usual = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._usual)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        code = frame.f_code
        if code.co_filename.startswith(OURS) and not code.co_flags & CO_GENERATOR:  # which resume, too
            self.calls += 1
            if self.calls == self.last:
                raise KeyboardInterrupt


@cache
def undisturbed() -> tuple[int, list[dict[str, Any]]]:
    """How many calls a run has, and its records."""
    with TemporaryDirectory() as folder, Interruption(last=0) as counter:
        records = run(Path(folder))
    return counter.calls, records


def trial(rng: random.Random, folder: Path) -> str:
    """`refused` if one of the runs was stopped."""
    calls, expected = undisturbed()
    outcome = "answered"
    for _ in range(rng.randint(1, 3)):
        try:
            with Interruption(rng.randrange(1, int(1.2 * calls))):
                run(folder)
        except KeyboardInterrupt:
            outcome = "refused"
    assert run(folder) == expected
    assert len((folder / "out" / "table.csv").read_text().splitlines()) == 1 + len(expected)
    return outcome


def run(folder: Path) -> list[dict[str, Any]]:
    """The records of three pairs, one of them with a file that is damaged, without what differs by place."""
    scans = folder / "scans"
    if not scans.exists():
        for number in range(3):
            write_ply(scans / f"{number}.ply", wavy_sheet(500, extent=1.0) + number)
        (scans / "3.ply").write_bytes(b"ply\n")
        (scans / "pairs.csv").write_text("1.ply,0.ply\n2.ply,1.ply\n3.ply,2.ply\n")
    pairs = batch.pairs_of(str(scans / "pairs.csv"))
    records = batch.run(Registrar(descriptor="fpfh", voxel=0.1), pairs, folder / "out", workers=0)
    keys = ("registered", "T_target_source", "confidence")
    return [{key: record.get(key) for key in keys} for record in records]
