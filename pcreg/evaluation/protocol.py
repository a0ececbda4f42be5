"""The protocol of a benchmark: what has to be fixed before figures can be compared."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from pcreg.runtime.errors import InputError

DRAWN = ("points", "matches")
FITTED_TO = ("drawn", "all")
RECALLS = ("information", "rmse", "gate")


@dataclass(frozen=True)
class Scoring:
    """When a pair counts as registered, and how pairs are averaged. Metres and degrees.

    Raises InputError for values that cannot be.
    """

    name: str
    _: KW_ONLY
    recall: str = "gate"  # what RR is: by information matrix (non-consecutive pairs), RMSE, or first gate
    recall_rmse: float = 0.2  # registered, by information matrix or RMSE
    gates: Sequence[Sequence[float]] = ()  # registered, by RTE and RRE; the first masks their means
    scene_mean: bool = True  # average within scenes first, then over scenes; else over all pairs
    note: str = ""  # what else a reader has to know, printed in captions

    def __post_init__(self) -> None:
        gates = tuple((float(metres), float(degrees)) for metres, degrees in self.gates)
        object.__setattr__(self, "gates", gates)  # the way to fill a default of a frozen dataclass
        self._positive("recall_rmse")
        self._one_of("recall", RECALLS)

    def _positive(self, *names: str) -> None:
        for name in names:
            if not getattr(self, name) > 0:
                raise InputError(f"protocol.{name}={getattr(self, name)}: it must be positive")

    def _one_of(self, name: str, choices: Sequence[str]) -> None:
        if getattr(self, name) not in choices:
            raise InputError(
                f"protocol.{name}={getattr(self, name)}: unknown; choose one of {', '.join(choices)}"
            )


@dataclass(frozen=True)
class Protocol(Scoring):
    """How a descriptor and an estimator are measured. Lengths in metres, angles in degrees.

    `samples` are the values of N that are measured, each by itself, from the same features. With
    `draw="points"` N random points of each cloud are matched; with `draw="matches"` N of the mutual
    matches of whole clouds are drawn at random. A cloud or a list of matches that has fewer is used
    whole, and so it is where N is None.

    Raises InputError for values that cannot be.
    """

    voxel: float  # one point per cell of this edge is described
    samples: Sequence[int | None] = (None,)
    draw: str = "points"
    mutual: bool = True  # the estimator gets mutual matches, else each source point's nearest
    fit: str = "drawn"  # the estimator sees the points of the draw, or all: hypotheses are scored on them
    tau1: float | None = None  # a match closer than this under the true motion is right; 2 x voxel
    tau2: float = 0.05  # a pair with an inlier ratio above this counts as matched
    distance: float | None = None  # RANSAC: a match closer than this is an inlier; 1.5 x voxel
    iterations: int = 50_000
    confidence: float = 0.999
    n: int = 3  # matches per RANSAC sample
    edge_length: float | None = 0.9  # RANSAC: ratio of edges within a sample; None: not checked

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (
            ("tau1", 2 * self.voxel if self.tau1 is None else self.tau1),
            ("distance", 1.5 * self.voxel if self.distance is None else self.distance),
            ("samples", tuple(self.samples)),
        ):
            object.__setattr__(self, name, value)
        self._positive("voxel", "tau1", "distance", "iterations")
        self._one_of("draw", DRAWN)
        self._one_of("fit", FITTED_TO)
        if not 0 < self.confidence < 1:
            raise InputError(
                f"protocol.confidence={self.confidence}: RANSAC ends early only below 1; set 0.999"
            )
        if self.recall == "gate" and not self.gates:
            raise InputError("protocol.gates=[]: recall by gate needs one; set protocol.gates=[[2.0,5.0]]")
        if self.n < 3:
            raise InputError(
                f"protocol.n={self.n}: three matches or more determine a motion; set protocol.n=3"
            )
        if not self.samples or len(set(self.samples)) < len(self.samples):
            raise InputError(
                f"protocol.samples={list(self.samples)}: give one number or more, each once, such as [5000]"
            )
        for samples in self.samples:
            if samples is not None and samples < self.n:
                raise InputError(f"protocol.samples={samples}: RANSAC needs {self.n} or more; null takes all")
        if self.draw == "matches" and not self.mutual:
            raise InputError("protocol.mutual=false: protocol.draw=matches draws from mutual matches")
