import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from pcreg.geometry.se3 import random_rotation, se3, transform
from pcreg.registration.matching import nearest as matching
from pcreg.registration.matching.nearest import Matches, match_all, match_within_bound, nearest, pca_project
from pcreg.registration.matching.screening import Keypoints, mutual_matches, screen
from pcreg.runtime import parallel

VOXEL = 0.05
A = np.array([[1, 0], [0, 1], [0.8, 0.6], [-1, 0]])
B = np.array([[0.6, 0.8], [1, 0], [0, -1]])


def test_nearest_and_mutual_of_a_hand_computed_example():
    assert nearest(A, B).tolist() == [1, 0, 0, 2]
    assert nearest(B, A).tolist() == [2, 0, 0]
    assert match_all(A, B).rows.tolist() == [[0, 1], [2, 0]]
    assert match_all(A, B).one_way.tolist() == [[0, 1], [1, 0], [2, 0], [3, 2]]


@pytest.mark.parametrize("budget", [1, 4_000, 1 << 30])
def test_nearest_is_exact_whatever_the_budget(monkeypatch, budget):
    for name in ("MAX_BLOCK_BYTES", "MAX_GPU_BLOCK_BYTES"):
        monkeypatch.setattr(matching, name, budget)
    rng = np.random.default_rng(0)
    # An offset as large as that of histograms: squared norms must not swallow the differences.
    a, b = (rng.normal(100, 1, (n, 33)).astype(np.float32) for n in (257, 131))
    brute = np.linalg.norm(a[:, None].astype(float) - b[None].astype(float), axis=2).argmin(1)
    np.testing.assert_array_equal(nearest(a, b), brute)
    np.testing.assert_array_equal(nearest(torch.from_numpy(a), torch.from_numpy(b)), brute)
    assert nearest(np.zeros((2, 4)), np.ones((3, 4))).tolist() == [0, 0]  # equal distances: the lower row


def test_blocks_of_tensors_are_compared_in_turn(monkeypatch):
    """Only one block is in memory at a time."""
    monkeypatch.setattr(matching, "MAX_GPU_BLOCK_BYTES", 1)
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    monkeypatch.setattr(parallel, "ThreadPoolExecutor", None)
    assert nearest(*map(torch.from_numpy, (A, B))).tolist() == [1, 0, 0, 2]


def test_tensors_have_the_same_matches():
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(n, 8)).astype(np.float32) for n in (257, 301))
    for sides in ((a, b), (b, a)):
        wanted, found = match_within_bound(*sides), match_within_bound(*map(torch.from_numpy, sides))
        np.testing.assert_array_equal(found.rows, wanted.rows)
        np.testing.assert_array_equal(found.one_way, wanted.one_way)
        assert 0 < len(found.rows) < len(found.one_way) == 257


@pytest.mark.parametrize("like", [np.asarray, torch.from_numpy])
def test_further_points_are_of_mutual_and_of_some_one_way_matches_each_once(like, monkeypatch):
    monkeypatch.setattr(matching, "MAX_ONE_WAY", 2)
    found = Matches(np.array([[1, 1], [3, 1], [2, 0]]), np.array([[0, 0], [1, 1], [2, 0], [3, 0]]))
    source, target = found.further_points(like(np.eye(4)), like(np.eye(2)))
    assert (source.argmax(1).tolist(), target.argmax(1).tolist()) == ([0, 1, 2], [0, 1, 0])


@pytest.mark.parametrize("like", [np.asarray, torch.from_numpy])
def test_features_of_many_rows_are_compared_in_their_principal_directions(like, monkeypatch):
    rng = np.random.default_rng(0)
    sides = [rng.normal(size=(n, 3)) @ rng.normal(size=(3, 8)) for n in (30, 40)]
    a, b = (like(side + 1e-6 * rng.normal(size=side.shape)) for side in sides)
    assert [each.shape[1] for each in pca_project(a, b)] == [8, 8]
    monkeypatch.setattr(matching, "MAX_PRODUCTS", 1)
    monkeypatch.setattr(matching, "MIN_COLUMNS", 6)
    projected = [np.asarray(each) for each in pca_project(a, b)]
    assert [each.shape[1] for each in projected] == [6, 6]
    distances = [cdist(*both) for both in (projected, sides)]  # the six hold all of two times three
    np.testing.assert_allclose(*distances, atol=1e-4)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0)])
def test_empty_clouds_match_nothing(n, m):
    a, b = np.empty((n, 3), np.float32), np.empty((m, 3), np.float32)
    assert match_all(a, b).one_way.shape == (0, 2)
    assert match_all(a, b).rows.shape == (0, 2)


@pytest.fixture
def compared(monkeypatch):
    """Record the number of compared pairs of rows per call; the limit is 10,000."""
    calls, compare = [], matching.nearest

    def counting(a, b, *rest):
        calls.append(len(a) * len(b))
        return compare(a, b, *rest)

    monkeypatch.setattr("pcreg.registration.matching.nearest.MAX_COMPARED_PAIRS", 10_000)
    monkeypatch.setattr("pcreg.registration.matching.nearest.MIN_KEYPOINTS", 10)
    monkeypatch.setattr("pcreg.registration.matching.nearest.nearest", counting)
    return calls


@pytest.mark.parametrize(("n", "m"), [(400, 500), (500, 400), (30, 2000), (2000, 30)])
def test_of_very_many_rows_those_of_keypoints_are_matched(compared, n, m):
    rng = np.random.default_rng(2)
    common = rng.normal(size=(min(n, m), 16))
    a, b = (
        np.concatenate([common, rng.normal(size=(rows - len(common), 16))])[rng.permutation(rows)]
        for rows in (n, m)
    )
    pairs = match_within_bound(a, b).rows
    assert max(compared) <= max(10_000, 10 * max(n, m))
    whole = {tuple(pair) for pair in match_all(a, b).rows}
    assert {tuple(pair) for pair in pairs} <= whole
    assert (np.diff(pairs[:, 0]) > 0).all()
    # Each of the smaller side's rows has its copy, so each keypoint has its match; they are spread evenly.
    max_keypoints = max(10_000 // max(n, m), 10)
    assert len(pairs) == min(max_keypoints, n, m)
    steps = np.diff(np.sort(pairs[:, 0 if n <= m else 1]))
    assert steps.max() - steps.min() <= 1


def keypoints(points: np.ndarray, features: np.ndarray) -> Keypoints:
    return Keypoints(points.astype(np.float32), features.astype(np.float32), VOXEL)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_matches_that_agree_on_one_motion_are_counted(rng):
    """80 of 300 points are in both scans, moved, with the same descriptors; the others differ."""
    T = se3(random_rotation(rng), np.array([3.0, -1.0, 2.0]))
    points, other = rng.uniform(0, 3, (2, 300, 3))
    features, others = rng.standard_normal((2, 300, 32))
    other[:80], others[:80] = transform(T, points[:80]), features[:80]
    assert 80 <= screen(keypoints(points, features), keypoints(other, others)) < 90


def test_matches_by_chance_agree_on_little(rng):
    points, other = rng.uniform(0, 3, (2, 300, 3))
    features, others = rng.standard_normal((2, 300, 32))
    assert screen(keypoints(points, features), keypoints(other, others)) < 10


def test_of_a_hand_computed_example_the_mutual_matches_are_taken():
    points, partners = mutual_matches(keypoints(np.eye(4, 3), A), keypoints(np.eye(3) + 5, B))
    np.testing.assert_array_equal(points, np.eye(4, 3)[[0, 2]])
    np.testing.assert_array_equal(partners, (np.eye(3) + 5)[[1, 0]])


def test_scans_of_hardly_any_points(rng):
    points, features = rng.uniform(0, 3, (2, 3)), rng.standard_normal((2, 32))
    assert screen(keypoints(points, features), keypoints(points, features)) == 0
