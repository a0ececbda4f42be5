"""How good answers are, where the motion is known: a record of each, and a row of them all per method."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcreg.evaluation.metrics import median, within
from pcreg.geometry.se3 import rotation_error, translation_error
from pcreg.io.pairs import Pair


@dataclass(frozen=True)
class Answer:
    method: str
    T_target_source: np.ndarray | None  # (4, 4) float64; None: found no motion
    accepted: bool | None = None  # by a verdict of its own; None: has none


@dataclass(frozen=True)
class Gates:
    """Which answers are right: RTE in metres, RRE in degrees."""

    loose: tuple[float, float]
    strict: tuple[float, float]

    def __str__(self) -> str:
        return ", ".join(f"{n} {m:g} m / {deg:g} deg" for n, (m, deg) in vars(self).items())


def record(pair: Pair, answer: Answer, seconds: float) -> dict[str, Any]:
    """Of one answer, errors None where there is no motion."""
    T, T_true = answer.T_target_source, pair.T_target_source
    return {
        "pair": pair.name,
        "overlap": pair.overlap,
        "method": answer.method,
        "RTE": None if T is None else translation_error(T, T_true),
        "RRE": None if T is None else rotation_error(T, T_true),
        "accepted": answer.accepted,
        "seconds": seconds,
    }


def rows(records: Sequence[dict[str, Any]], gates: Gates) -> Iterator[dict[str, Any]]:
    """A row per method, in the order in which they first answered."""
    for method in dict.fromkeys(each["method"] for each in records):
        yield _row(method, [each for each in records if each["method"] == method], gates)


def _row(method: str, records: Sequence[dict[str, Any]], gates: Gates) -> dict[str, Any]:
    RTE, RRE, seconds = (
        np.array([each[key] for each in records], dtype=np.float64)  # None is NaN
        for key in ("RTE", "RRE", "seconds")
    )
    right = within(RTE, RRE, gates.loose)
    has_verdict = records[0]["accepted"] is not None
    accepted = np.array([bool(each["accepted"]) for each in records])
    return {
        "pairs": len(records),
        "loose": int(right.sum()),
        "strict": int(within(RTE, RRE, gates.strict).sum()),
        "wrong accepted": int((accepted & ~right).sum()) if has_verdict else None,
        "right refused": int((right & ~accepted).sum()) if has_verdict else None,
        "s": median(seconds),
        "s 90 %": float(np.quantile(seconds, 0.9)),
        "RTE m": median(RTE[right]) if right.any() else None,
        "RRE deg": median(RRE[right]) if right.any() else None,
        "method": method,
    }
