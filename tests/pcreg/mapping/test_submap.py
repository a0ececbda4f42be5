from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import inverse, random_rotation, se3, transform
from pcreg.mapping.placement import Placement
from pcreg.mapping.submap import Question, Submap, fused, most_overlapping, name_on_record, overlaps
from pcreg.registration.clouds.preprocess import describe
from tests.pcreg.mapping.edges import VOXEL, edge, scan
from tests.pcreg.registration.test_icp import corner
from tests.rooms import stored_room

COARSE = 0.1


def test_a_question_on_record_is_one_about_the_same_files_and_places():
    """The question includes the exact poses within a submap and the state of each file."""
    paths, here = ["a.ply", "b.ply", "c.ply"], np.tile(np.eye(4), (2, 1, 1))
    one, other, moved = (
        Submap((0, 1), here),
        Submap((2,), here[:1]),
        Submap((0, 1), here * [[[1]], [[1 + 1e-15]]]),
    )
    asked = [Question(one, other), Question(one, other, here[0]), Question(moved, other, here[0])]
    works = [SimpleNamespace(stamp=lambda scans, n=n: [n] * len(scans)) for n in range(2)]
    names = [name_on_record(work, paths, COARSE, each) for work in works for each in (*asked, *asked)]
    assert [names.index(name) for name in names] == [0, 1, 2, 0, 1, 2, 6, 7, 8, 6, 7, 8]


def test_two_halves_make_the_whole_and_keep_their_viewpoints():
    """The halves share a strip; each is described by itself in its own frame."""
    points = stored_room(0).target
    middle = np.median(points[:, 0])
    halves = [points[points[:, 0] < middle + 0.5], points[points[:, 0] > middle - 0.5]]
    rng = np.random.default_rng(0)
    poses = np.array([np.eye(4), se3(random_rotation(rng), rng.uniform(-3, 3, 3))])
    own = [transform(inverse(T), half) for T, half in zip(poses, halves, strict=True)]
    described = [describe(points, FPFH(COARSE)) for points in own]
    described[1] = replace(described[1], viewpoint_known=True)  # as of one scan of a map that was corrected
    submap = Submap.of([0, 1], poses)
    np.testing.assert_allclose(submap.poses, poses, atol=1e-12)
    whole = fused(described, submap.poses, COARSE)
    assert not whole.viewpoint_known
    assert len(whole.surface) < sum(len(half.surface) for half in described)
    cells = {tuple(cell) for cell in np.floor(points / COARSE).astype(int)}
    assert len(whole.points) > 0.7 * len(cells)
    assert whole.features.shape == (len(whole.points), described[0].features.shape[1])
    first = (whole.viewpoint == described[0].viewpoint).all(1)
    assert {*map(tuple, whole.surface[first])} <= {*map(tuple, described[0].surface)}
    second = transform(poses[1], described[1].viewpoint[None])[0]
    assert (~first).sum() > 100
    np.testing.assert_allclose(whole.viewpoint[~first] - second, 0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(whole.normals, axis=1), 1, atol=1e-6)
    towards = ((whole.viewpoint - whole.surface) * whole.normals).sum(1)
    assert (towards > -1e-6).mean() > 0.99


def test_overlap_is_a_share_of_the_smaller_scan_within_a_map():
    """Two scans of a corner and half of one, in one map; a fourth, in the same place, in another."""
    clouds = [corner(3000, seed) for seed in range(4)]
    clouds[2] = clouds[2][clouds[2][:, 0] < 1]
    scans, poses = list(map(scan, clouds)), np.tile(np.eye(4), (4, 1, 1))
    shared = overlaps(scans, poses, np.array([0, 0, 0, 1]), VOXEL)
    assert shared[0, 1] > 0.9
    assert shared[0, 2] > 0.9
    assert shared[[3]].nnz == 0
    poses[1, 0, 3] = 1.0  # half of it is left
    assert 0.2 < overlaps(scans, poses, np.zeros(4, np.int64), VOXEL)[0, 1] < 0.7
    assert most_overlapping(shared, 0, 1, 0.5) == [int(shared[[0]].toarray().argmax())]
    assert sorted(most_overlapping(shared, 0, 9, 0.5)) == [1, 2]
    assert most_overlapping(shared, 3, 9, 0.0) == []


def test_scans_are_around_one_another_that_up_to_two_edges_join():
    scans = [scan(corner(1000, seed)) for seed in range(4)]
    chain = [edge(row + 1, row, np.eye(4)) for row in range(3)]
    placement = Placement(scans, np.tile(np.eye(4), (4, 1, 1)), np.zeros(4, np.int64), chain, VOXEL)
    assert sorted(placement.around(0)) == [1, 2]


def test_a_place_is_the_mean_of_motions_by_their_confidence():
    scans, poses = [scan(corner(1000, seed)) for seed in range(2)], np.tile(np.eye(4), (2, 1, 1))
    placement = Placement(scans, poses, np.arange(2), [], VOXEL)
    likely = (0.0, 0.9), (0.04, 0.3), (6.1 * VOXEL, 0.2), (5.9 * VOXEL, 1e-9)
    place, other = placement.places([edge(1, 0, se3(np.eye(3), [x, 0, 0]), sure) for x, sure in likely])
    assert (len(place), len(other)) == (3, 1)
    np.testing.assert_allclose(placement._mean(place), se3(np.eye(3), [0.01, 0, 0]), atol=1e-9)
