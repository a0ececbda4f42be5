"""Scans placed by the maps so far, and questions about joints and searches."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from pcreg.geometry.se3 import inverse, procrustes, rms_displacement, transform
from pcreg.mapping.graph import MAX_CLOSURE_VOXELS, Edge, Motion, symmetric
from pcreg.mapping.submap import Question, Scan, Submap, most_overlapping, overlaps
from pcreg.runtime import cached_property

MIN_OVERLAP = 0.05  # of a scan with another one that is around it
MAX_AROUND = 6  # scans around one
MAX_NEAR = 12  # scans around either end of a motion, from which overlapping ones are chosen
MAX_SEARCHED = 4  # scans of a map that are searched for in another


@dataclass(frozen=True)
class Placement:
    """The scans in the maps that they form so far."""

    scans: Sequence[Scan]
    poses: np.ndarray  # (n, 4, 4)
    component: np.ndarray  # (n,) int64
    edges: Sequence[Edge]  # on which the poses rest
    voxel: float  # metres

    @cached_property
    def overlap(self) -> csr_array:
        """Overlap (n, n) of scans that one edge or two connect: along longer paths scans drift."""
        found = overlaps(self.scans, self.poses, self.component, self.voxel)
        linked = symmetric(len(self.scans), self.edges, np.ones(len(self.edges)))
        return found.multiply((linked + linked @ linked) != 0).tocsr()

    @cached_property
    def members(self) -> list[np.ndarray]:
        """The scans of each map, ascending."""
        order = np.argsort(self.component, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.component))[:-1])

    def around(self, scan: int) -> list[int]:
        """Up to six scans that overlap most with one, without it."""
        return most_overlapping(self.overlap, scan, MAX_AROUND, MIN_OVERLAP)

    def searches(self, smaller: int, larger: int, inliers: csr_array) -> list[Question]:
        """Questions that search for scans of one map in another, each around the scan that agrees most."""
        own, others = self.members[smaller], self.members[larger]
        agree = inliers[np.ix_(own, others)].toarray()
        questions = []
        for place in np.argsort(-agree.max(1), kind="stable")[:MAX_SEARCHED]:
            if agree[place].any():
                best = int(others[agree[place].argmax()])
                source = Submap.of([int(own[place])], self.poses)
                questions.append(Question(source, Submap.of([best, *self.around(best)], self.poses)))
        return questions

    def between_maps(self, motions: Sequence[Motion]) -> dict[tuple[int, int], list[Motion]]:
        """The motions and their inverses, by the maps of source and target."""
        found: dict[tuple[int, int], list[Motion]] = defaultdict(list)
        for motion in [*motions, *(motion.inverted() for motion in motions)]:
            found[self.ends(motion)].append(motion)
        return found

    def is_larger(self, one: int, other: int) -> bool:
        """True if the first of two maps has more scans, or as many and comes first."""
        return (len(self.members[one]), other) > (len(self.members[other]), one)

    def ends(self, motion: Motion) -> tuple[int, int]:
        """The maps of source and target."""
        return int(self.component[motion.source]), int(self.component[motion.target])

    def places(self, motions: Sequence[Motion]) -> list[list[Motion]]:
        """Group motions between two maps that agree, likeliest first; groups by their sum of confidences."""
        places: list[list[Motion]] = []
        for motion in sorted(motions, key=lambda motion: -motion.confidence):
            same = next((place for place in places if self._alike(motion, place[0])), None)
            same.append(motion) if same else places.append([motion])
        return sorted(places, key=lambda place: -sum(motion.confidence for motion in place))

    def joint(self, place: Sequence[Motion]) -> Question | None:
        """A question that verifies motions between two maps that agree; None without overlap.

        It has the source scan that overlaps most with the other map, and the scans around it, as a submap.
        """
        own, there = (
            [end, *most_overlapping(self.overlap, end, MAX_NEAR, MIN_OVERLAP)]
            for end in (place[0].source, place[0].target)
        )
        T = self._mean(place)
        poses = np.concatenate([T @ self.poses[own], self.poses[there]])  # in the map of the target
        scans = [self.scans[row] for row in own + there]
        found = overlaps(scans, poses, np.zeros(len(scans), dtype=np.int64), self.voxel)
        between = found[: len(own), len(own) :]
        nearest = int(between.toarray().max(1).argmax())
        target = [there[n] for n in most_overlapping(between, nearest, MAX_AROUND + 1, MIN_OVERLAP)]
        if not target:
            return None
        source = [own[nearest], *self.around(own[nearest])]
        at = inverse(self.poses[target[0]]) @ T @ self.poses[source[0]]
        return Question(Submap.of(source, self.poses), Submap.of(target, self.poses), at)

    def contradicts(self, one: Motion, other: Motion) -> bool:
        """True for motions between the same maps that put one of them in different places."""
        return self.ends(one) == self.ends(other) and not self._alike(one, other)

    def _alike(self, one: Motion, other: Motion) -> bool:
        """True for motions that put the map of their sources in about the same place."""
        moved = [self._between(each) @ self.poses[one.source] for each in (one, other)]
        return rms_displacement(self.scans[one.source].probes, *moved) < MAX_CLOSURE_VOXELS * self.voxel

    def _mean(self, place: Sequence[Motion]) -> np.ndarray:
        """Mean (4, 4) of motions between two maps that agree, by how they move the first one's source."""
        scan = place[0].source
        points = transform(self.poses[scan], self.scans[scan].probes)
        moved = [transform(self._between(motion), points) for motion in place]
        return procrustes(points, np.average(moved, axis=0, weights=[motion.confidence for motion in place]))

    def _between(self, motion: Motion) -> np.ndarray:
        """Motion (4, 4) of the source's map into that of the target, by the motion of one pair."""
        return self.poses[motion.target] @ motion.T_target_source @ inverse(self.poses[motion.source])
