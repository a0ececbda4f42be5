"""Outdoor scenes, and the sites on which they are built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pcreg.datasets.simulated.outdoor.ground import Ground, Road
from pcreg.datasets.simulated.solids import Solids

Maker = Callable[[np.random.Generator], Solids]


def standing(
    x: np.ndarray, y: np.ndarray, z: np.ndarray | float, yaw: np.ndarray, scale: np.ndarray | float = 1.0
) -> np.ndarray:
    """Maps (N, 4, 4) that stretch by `scale` (N, 3), rotate by `yaw` (N,) radians, and move to x, y, z."""
    T = np.zeros((len(x), 4, 4))
    T[:, 0, 0] = T[:, 1, 1] = np.cos(yaw)
    T[:, 1, 0] = np.sin(yaw)
    T[:, 0, 1] = -T[:, 1, 0]
    T[:, 2, 2] = T[:, 3, 3] = 1
    T[:, :3, :3] *= np.broadcast_to(scale, (len(x), 3))[:, None]
    T[:, 0, 3], T[:, 1, 3], T[:, 2, 3] = x, y, z
    return T


@dataclass(frozen=True)
class Mover:
    """Solids that move along a road."""

    solids: Solids
    road: Road
    station: float  # metres, at time 0
    offset: float  # metres to the left of its middle
    speed: float  # metres per second, negative against the road's direction

    def poses(self, ground: Ground, seconds: np.ndarray) -> np.ndarray:
        """Poses (S, 4, 4) at times (S,) in seconds."""
        x, y, yaw = self.road.at(self.station + self.speed * seconds, self.offset)
        return standing(x, y, ground.heights(x, y), yaw + np.pi * (self.speed < 0))


@dataclass(frozen=True)
class Scene:
    """Everything that rays can meet, and the roads for sensors, the main one first."""

    kind: str
    ground: Ground
    solids: Solids
    movers: tuple[Mover, ...]
    ways: tuple[Road, ...]
    radius: float = 45.0  # metres from the middle up to which the ways may be used
    relief: float = 1.0  # factor by which the relief of materials is multiplied


@dataclass
class Site:
    """Builder of a scene: the ground, the roads and the things placed so far."""

    rng: np.random.Generator
    ground: Ground
    roads: Sequence[Road]
    radius: float = 45.0  # metres from the middle that a sensor may go
    placed: list[tuple[Solids, np.ndarray]] = field(default_factory=list)  # and T (N, 4, 4) at z = 0
    movers: list[Mover] = field(default_factory=list)

    def scene(self, kind: str) -> Scene:
        poses = [T for _, T in self.placed]
        at = np.concatenate(poses)[:, :2, 3]
        heights = np.split(self.ground.heights(*at.T), np.cumsum([len(T) for T in poses])[:-1])
        for T, z in zip(poses, heights, strict=True):
            T[:, 2, 3] = z
        solids = Solids.join(*(each.copies(T) for each, T in self.placed))
        movers, ways, relief = tuple(self.movers), tuple(self.roads), self.rng.uniform(0.3, 1.5)
        return Scene(kind, self.ground, solids, movers, ways, self.radius, relief)

    def clear(self, x: np.ndarray, y: np.ndarray, margin: float, but: Road | None = None) -> np.ndarray:
        """Mask (N,) of places at least `margin` metres off every road except `but`."""
        free = np.ones(np.shape(x), bool)
        for road in self.roads:
            if road is not but:
                free &= np.abs(road.aside(x, y)) > road.half_width + margin
        return free

    def put(self, solids: Solids, x=0.0, y=0.0, yaw=0.0, stretch: float = 0.0) -> None:
        """Place copies at x, y (N,), rotated by yaw (N,) and stretched by up to `stretch` along each axis."""
        x, y, yaw = np.broadcast_arrays(*map(np.atleast_1d, (x, y, yaw)))
        scale = self.rng.uniform(1 - stretch, 1 + stretch, (len(x), 3))
        self.placed.append((solids, standing(x, y, 0.0, yaw, scale)))

    def scatter(self, make: Maker, models: int, x, y, yaw, stretch: float = 0.15) -> None:
        """Make `models` models, and put a random one of them at each place x, y (N,)."""
        which = self.rng.integers(models, size=len(x))
        for model in range(models):
            here = which == model
            if here.any():
                self.put(make(self.rng), x[here], y[here], yaw[here], stretch)

    def beside(
        self,
        make: Maker,
        road: Road,
        offset: float,  # negative: to its right
        gap: float,  # metres from one to the next
        span: float = 95.0,  # metres along the road to either side of its station 0
        missing: float = 0.2,  # share of the row that is left out
        models: int = 2,
        turn: float = 0.0,  # radians, from facing the road
        jitter: float = 0.3,  # range of random offsets: metres across, 0.4 gaps along
        margin: float = 0.0,  # metres to other roads
        stretch: float = 0.15,
    ) -> None:
        """Place a row along a road, `offset` metres to its left, facing the road."""
        station = np.arange(-span, span, gap) + self.rng.uniform(-0.5, 0.5) * gap
        station = station[self.rng.random(len(station)) >= missing]
        station = station + self.rng.uniform(-0.2, 0.2, len(station)) * gap * jitter
        aside = offset + self.rng.uniform(-0.5, 0.5, len(station)) * jitter
        x, y, yaw = road.at(station, aside)
        free = self.clear(x, y, margin, but=road)
        yaw = yaw + (np.pi if offset < 0 else 0.0) + turn
        self.scatter(make, models, x[free], y[free], yaw[free], stretch)

    def frontage(
        self,
        make: Callable[[np.random.Generator, float], Solids],
        road: Road,
        offset: float,
        widths: tuple[float, float],  # metres, from and to, as `gap`
        gap: tuple[float, float] = (0.0, 0.0),
        depth: float = 8.0,  # metres behind the front that have to be clear of other roads
        span: float = 100.0,
        missing: float = 0.0,
        margin: float = 1.0,
        setback: float = 0.0,  # metres behind `offset`, at most
    ) -> None:
        """Place buildings, walls or fences side by side along a road, facing it."""
        s = -span + self.rng.uniform(0, widths[0])
        while s < span:
            width = self.rng.uniform(*widths)
            middle, s = s + width / 2, s + width + self.rng.uniform(*gap)
            if self.rng.random() < missing:
                continue
            out = np.sign(offset)
            front = offset + out * self.rng.uniform(0, setback)
            x, y, yaw = road.at(middle, front)
            edges = road.at(
                middle + width * np.array([-0.5, 0.5, -0.5, 0.5, 0, 0]),
                front + out * depth * np.array([0, 0, 1, 1, 0, 1]),
            )
            if self.clear(edges[0], edges[1], margin, but=road).all():
                self.put(make(self.rng, width), x, y, yaw + (np.pi if offset < 0 else 0.0))

    def area(self, n: int, radius: float, margin: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Up to n random places x, y within `radius` and off the roads, with a random direction each."""
        x, y = self.rng.uniform(-radius, radius, (2, n))
        free = self.clear(x, y, margin)
        return x[free], y[free], self.rng.uniform(0, 2 * np.pi, free.sum())

    def drive(self, make: Maker, road: Road, n: int, offset: float, speed: float) -> None:
        """Add n movers on a road; movers on its left go against its direction."""
        for _ in range(n):
            side = self.rng.choice([-1.0, 1.0])
            solids, station = make(self.rng), self.rng.uniform(-80, 80)
            aside = side * offset * self.rng.uniform(0.8, 1.2)
            pace = -side * speed * self.rng.uniform(0.3, 1.2)
            self.movers.append(Mover(solids, road, station, aside, pace))
