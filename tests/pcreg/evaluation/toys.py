"""A toy benchmark: views of random points, and a descriptor that recognizes the points."""

import time
from dataclasses import replace

import numpy as np

from pcreg.evaluation import runner
from pcreg.evaluation.estimators import NativeRansac
from pcreg.evaluation.protocol import Protocol
from pcreg.features.base import Description
from pcreg.features.cache import FeatureCache
from pcreg.geometry.se3 import inverse, random_rotation, se3, transform
from pcreg.io.pairs import Pair
from pcreg.runtime.records import Records

PROTOCOL = Protocol(name="toy", voxel=0.1, samples=(150, 60), gates=((2.0, 5.0), (0.2, 1.0)))
ONE_DRAW = replace(PROTOCOL, samples=(150,))


class Distances:
    """Describe a point by its distances to three points that are the same in all views of a cloud."""

    name = "distances"
    voxel = 0.1
    fingerprint = ""
    reflection_invariant = False
    device = "cpu"

    def __init__(self):
        self.described = 0

    def describe(self, points):
        self.described += 1
        centre = points.mean(0)
        far = points[np.linalg.norm(points - centre, axis=1).argmax()]
        farther = points[np.linalg.norm(points - far, axis=1).argmax()]
        features = [np.linalg.norm(points - p, axis=1) for p in (centre, far, farther)]
        return Description(points, np.stack(features, axis=1).astype(np.float32))


class Slow(NativeRansac):
    """Work slowly, which leaves time to stop a run."""

    def __init__(self, seconds):
        self.seconds = seconds

    def estimate(self, *arguments):
        time.sleep(self.seconds)
        return super().estimate(*arguments)


class Nothing(Distances):
    def describe(self, points):
        return Description(points, np.empty((0, 3), np.float32))


class Noisy(Distances):
    def describe(self, points):
        described = super().describe(points)
        noise = np.random.default_rng(int(1e6 * abs(points[0, 0]))).normal(
            scale=3, size=described.features.shape
        )
        features = np.where(np.arange(len(points))[:, None] % 2, described.features, noise)
        return Description(described.points, features.astype(np.float32))


class Rooms:
    """Views of a room per scene."""

    name = "rooms"
    left_out = ()

    def __init__(self, scenes=("a", "b"), views=3):
        rng = np.random.default_rng(3)
        self.poses, self.rooms = {}, {}
        for scene in scenes:
            self.rooms[scene] = rng.uniform(-2, 2, (200, 3))
            for view in range(views):
                self.poses[f"{scene}/{view}"] = se3(random_rotation(rng), rng.normal(size=3))
        self.pairs = [
            Pair(
                source=f"{scene}/{j}",
                target=f"{scene}/{i}",
                T_target_source=inverse(self.poses[f"{scene}/{i}"]) @ self.poses[f"{scene}/{j}"],
                scene=scene,
                information=np.diag([5.0, 5, 5, 10, 10, 10]),
                consecutive=j - i == 1,
            )
            for scene in scenes
            for i in range(views)
            for j in range(i + 1, views)
        ]

    def cloud(self, name):
        return transform(inverse(self.poses[name]), self.rooms[name[0]])


def run(folder, dataset=None, descriptor=None, protocol=PROTOCOL, estimator=None, cache=None, **about):
    settings = {name: about.pop(name, usual) for name, usual in (("seeds", (0, 1)), ("workers", 0))}
    records = Records(folder / "records.jsonl", {"seeds": list(settings["seeds"]), **about})
    descriptor = descriptor or Distances()
    features = FeatureCache(cache or folder / "features", descriptor, {})
    parts = dataset or Rooms(), descriptor, estimator or NativeRansac(), protocol, records, features
    return runner.run(*parts, **settings)


def untimed(value):
    """Records without their times, which differ between runs."""
    if isinstance(value, dict):
        return {key: untimed(each) for key, each in value.items() if "seconds" not in key}
    return [untimed(each) for each in value] if isinstance(value, list) else value
