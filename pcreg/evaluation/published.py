"""Figures from the literature, to print beside ours; recalls and ratios as fractions, metres, degrees.

They are in published.yaml, by benchmark and the protocol by which they were measured.
"""

from dataclasses import dataclass
from importlib.resources import files

import yaml

SAMPLES = (5000, 2500, 1000, 500, 250)  # of the lists in the file

Curve = dict[int | None, float]  # by the number of samples; None: all points


@dataclass(frozen=True)
class Published:
    method: str
    source: str
    figures: dict[str, Curve]


def _read() -> dict[tuple[str, str], tuple[Published, ...]]:
    text = (files("pcreg.evaluation") / "published.yaml").read_text(encoding="utf-8")
    return {
        (table["benchmark"], table["protocol"]): tuple(
            Published(
                entry["method"],
                entry["source"],
                {key: _curve(key, value) for key, value in entry["figures"].items()},
            )
            for entry in table["methods"]
        )
        for table in yaml.safe_load(text)
    }


def _curve(key: str, value: float | list[float] | dict[int, float]) -> Curve:
    if isinstance(value, list):
        value = dict(zip(SAMPLES, value, strict=True))
    elif not isinstance(value, dict):
        value = {None: value}
    scale = 1 if key.startswith(("RTE", "RRE")) else 100  # the file has percent
    return {samples: round(each / scale, 5) for samples, each in value.items()}


PUBLISHED = _read()
