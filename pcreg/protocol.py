"""The protocol of a benchmark: what has to be fixed before figures can be compared."""

from dataclasses import dataclass

from pcreg.errors import InputError


@dataclass(frozen=True)
class Protocol:
    """Lengths in metres, angles in degrees. Matches are mutual nearest neighbours of features.

    Raises InputError for lengths and numbers that cannot be.
    """

    name: str
    voxel: float  # one point per cell of this edge is described
    tau1: float | None = None  # a match closer than this under the true motion is right; 2 x voxel
    tau2: float = 0.05  # a pair with an inlier ratio above this counts as matched
    samples: int | None = None  # points drawn at random per cloud before matching; None: all
    distance: float | None = None  # RANSAC: a match closer than this is an inlier; 1.5 x voxel
    iterations: int = 50_000
    confidence: float = 0.999
    n: int = 3  # matches per RANSAC sample
    edge_length: float = 0.9  # RANSAC: ratio of edges within a sample
    recall_rmse: float = 0.2  # registered, by information matrix or RMSE
    gates: tuple[tuple[float, float], ...] = ()  # registered, by RTE and RRE; the first masks their means
    scene_mean: bool = True  # average within scenes first, then over scenes; else over all pairs

    def __post_init__(self) -> None:
        for name, value in (
            ("tau1", 2 * self.voxel if self.tau1 is None else self.tau1),
            ("distance", 1.5 * self.voxel if self.distance is None else self.distance),
            ("gates", tuple((float(metres), float(degrees)) for metres, degrees in self.gates)),
        ):
            object.__setattr__(self, name, value)  # the way to fill a default of a frozen dataclass
        for name in ("voxel", "tau1", "distance", "iterations", "recall_rmse"):
            if not getattr(self, name) > 0:
                raise InputError(f"protocol.{name}={getattr(self, name)}: it must be positive")
        if self.n < 3:
            raise InputError(
                f"protocol.n={self.n}: three matches or more determine a motion; set protocol.n=3"
            )
        if self.samples is not None and self.samples < self.n:
            raise InputError(
                f"protocol.samples={self.samples}: RANSAC needs {self.n} or more; null takes all points"
            )
