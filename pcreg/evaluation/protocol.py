"""Protocol of a benchmark, which has to be equal for figures to be comparable, and its caption."""

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from pcreg.runtime.errors import InputError


@dataclass(frozen=True)
class Scoring:
    """Criterion of registered pairs, and the way to average; the command line checks types and bounds."""

    name: str
    _: KW_ONLY
    # criterion of RR: information matrix (non-consecutive pairs), RMSE, or the first gate
    recall: Literal["information", "rmse", "gate"] = "gate"
    recall_rmse: PositiveFloat = 0.2  # metres; largest error of a registered pair, by either of these
    gates: Sequence[Sequence[float]] = ()  # RTE in metres and RRE in degrees stay below; means use the first
    scene_mean: bool = True  # average within scenes first, then over scenes; else over all pairs
    note: str = ""  # printed below captions

    def __post_init__(self) -> None:
        gates = tuple(tuple(map(float, gate)) for gate in self.gates)
        if not all(len(gate) == 2 and min(gate) > 0 and max(gate) < float("inf") for gate in gates):
            raise InputError(f"protocol.gates={self.gates}: give metres and degrees, such as [[2.0,5.0]]")
        object.__setattr__(self, "gates", gates)  # the dataclass is frozen


@dataclass(frozen=True)
class Protocol(Scoring):
    """Measurement of a descriptor and an estimator; raises InputError for values that do not fit together.

    `samples` are the values of N that are measured, each by itself, from the same features. With
    `draw="points"` N random points of each cloud are matched; with `draw="matches"` N of the mutual
    matches of whole clouds are drawn at random. All are taken if there are fewer, and if N is None.
    """

    voxel: PositiveFloat  # metres; one point per cell of this edge is described
    samples: Annotated[Sequence[int | None], Field(min_length=1)] = (None,)
    draw: Literal["points", "matches"] = "points"
    mutual: bool = True  # the estimator gets mutual matches, else the nearest of each source point
    fit: Literal["drawn", "all"] = "drawn"  # with draw="matches": points on which hypotheses are scored
    tau1: PositiveFloat | None = None  # metres; inlier distance under the true motion; None: 2 x voxel
    tau2: Annotated[float, Field(ge=0, lt=1)] = 0.05  # the inlier ratio above which a pair counts as matched
    distance: PositiveFloat | None = None  # metres; inlier distance of RANSAC; None: 1.5 x voxel
    iterations: PositiveInt = 50_000
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.999
    n: Annotated[int, Field(ge=3)] = 3  # matches per RANSAC sample
    # RANSAC: least ratio of an edge of a sample in one cloud to that in the other; None: not checked
    edge_length: Annotated[float, Field(gt=0, le=1)] | None = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        # The distance is rounded, as captions show all its digits
        for name, value in (
            ("tau1", 2 * self.voxel if self.tau1 is None else self.tau1),
            ("distance", round(1.5 * self.voxel, 9) if self.distance is None else self.distance),
            ("samples", tuple(self.samples)),
        ):
            object.__setattr__(self, name, value)
        if self.recall == "gate" and not self.gates:
            raise InputError("protocol.gates=[]: recall by gate needs one; set protocol.gates=[[2.0,5.0]]")
        if len(set(self.samples)) < len(self.samples):
            raise InputError(f"protocol.samples={list(self.samples)}: give each number once, such as [5000]")
        for samples in self.samples:
            if samples is not None and samples < self.n:
                raise InputError(f"protocol.samples={samples}: RANSAC needs {self.n} or more; null takes all")
        if self.draw == "matches" and not self.mutual:
            raise InputError("protocol.mutual=false: protocol.draw=matches draws from mutual matches")
        if self.draw == "points" and self.fit == "all":
            raise InputError("protocol.fit=all: goes with protocol.draw=matches alone; set both")


@dataclass(frozen=True)
class Setup:
    """Everything on which the figures of a run depend, except for its pairs."""

    benchmark: str
    protocol: Scoring
    descriptor: str
    fingerprint: str  # of the weights; "" if nothing is learned
    estimator: str
    seeds: tuple[int, ...]
    versions: dict[str, str]
    alterations: tuple[str, ...] = ()  # settings of the benchmark and of its clouds
    left_out: tuple[str, ...] = ()  # pairs of the benchmark that are not in this run, with the reason

    @property
    def title(self) -> str:
        return f"{self.benchmark}, {self.protocol.name}: {self.descriptor} + {self.estimator}"


def caption(records: Sequence[dict[str, Any]], setup: Setup) -> str:
    """Everything that the figures of these records depend on, as names and settings."""
    counts = {"pair": len(records), "scene": len({record["scene"] for record in records})}
    pairs, scenes = (f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    settings = [
        f"{name}={json.dumps(value, default=str)}".replace('"', "")  # as a command line takes them
        for name, value in asdict(setup.protocol).items()
        if name not in ("name", "note")
    ]
    weights = f" (weights {setup.fingerprint})" if setup.fingerprint else ""
    parts = [
        f"{pairs} of {scenes}",
        f"descriptor {setup.descriptor}{weights}",
        f"estimator {setup.estimator}",
        f"protocol {setup.protocol.name}: {', '.join(settings)}",
        *setup.alterations,
        f"seeds {list(setup.seeds)}{', ± sample standard deviation' if len(setup.seeds) > 1 else ''}",
        ", ".join(f"{package} {version}" for package, version in setup.versions.items()),
        *([f"{len(setup.left_out)} pairs left out, first {setup.left_out[0]}"] if setup.left_out else []),
    ]
    return " ".join([f"{'; '.join(parts)}.", setup.protocol.note]).strip()
