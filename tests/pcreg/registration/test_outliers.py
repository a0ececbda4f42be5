"""Rows that no sensor measured are left out with a warning; other rows are not changed."""

import numpy as np
import pytest

from pcreg import register
from pcreg.io.cloud import Cloud, write_ply
from pcreg.registration.clouds.inputs import as_cloud
from pcreg.registration.clouds.outliers import without_outliers
from pcreg.runtime.errors import InputError

UTM = np.array([500_000.0, 4_000_000.0, 100.0])
ZERO = np.zeros((1, 3))


def added(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows spread among the points."""
    return np.random.default_rng(0).permutation(np.concatenate([points, rows]))


@pytest.mark.parametrize(
    ("fill", "share", "words"),
    [(0, 0.001, "zeros"), (0, 0.45, "zeros"), (-9999, 0.5, "-9999 " * 3), (3e38, 0.5, "3e+38 " * 3)]
    + [(0.5, share, "0.5 " * 3) for share in (0.6, 0.97)],
)
def test_repeated_rows_without_a_return_are_left_out_and_counted(room, fill, share, words):
    rows = np.full((int(share / (1 - share) * len(room.source)), 3), fill)
    cloud = as_cloud(added(room.source, rows), "left")
    assert sorted(map(tuple, cloud.points)) == sorted(map(tuple, room.source))
    assert cloud.dropped == len(rows)
    assert cloud.notes == (f"{len(rows)} rows of {words.strip()}, no return, are left out",)


def test_a_single_point_at_the_origin_is_a_point(room):
    cloud = as_cloud(added(room.source, ZERO), "left")
    assert len(cloud.points) == len(room.source) + 1
    assert cloud.notes == ()
    assert len(as_cloud(np.arange(9.0).reshape(3, 3), "left").points) == 3


@pytest.mark.parametrize(
    ("place", "strays"),
    [
        (UTM, ZERO),
        (0 * UTM, np.array([[1e5, -1e5, 1e5]])),
        (0 * UTM, np.array([[0, 0, 1e7]])),
        (0 * UTM, np.array([[1e30, 0, 0], [0, -1e300, 0], [1e5, 0, 0]])),
        (UTM, np.random.default_rng(0).uniform(1e8, 1e9, (300, 3))),
    ],
    ids=["zero in UTM", "100 km", "10000 km", "beyond float32", "one percent"],
)
def test_a_few_points_far_from_all_others_are_left_out(room, place, strays):
    cloud = as_cloud(added(room.source + place, strays), "left")
    assert sorted(map(tuple, cloud.points)) == sorted(map(tuple, room.source + place))
    assert cloud.dropped == len(strays)
    assert cloud.notes[0].startswith(f"{len(strays)} points are left out")


@pytest.mark.parametrize("lidar", [False, True])
def test_a_cloud_without_outliers_comes_back_itself(room, real_data, lidar):
    points = room.source
    if lidar:
        kept = np.load(real_data / "lidar/hdl64_city/scans.npz")
        points = np.stack([kept[axis][:123_000] * float(kept["unit_m"]) for axis in "xyz"], axis=1)
    cloud = Cloud(points, dropped=1)
    assert without_outliers(cloud, "left") is cloud


def dropped(rows: np.ndarray) -> int:
    """Number of points that are left out of a hundred, the last of which are `rows`."""
    points = np.random.default_rng(0).uniform(1, 2, (100 - len(rows), 3))
    return without_outliers(Cloud(np.concatenate([points, rows])), "left").dropped


def test_up_to_five_percent_are_few():
    corner, far = np.full((6, 3), 0.5), np.outer([1e6, -1e6, 2e6, -2e6, 3e6, -3e6], np.ones(3))
    assert (dropped(corner[:5]), dropped(corner)) == (0, 6)  # few are a part of the scan
    assert (dropped(far[:5]), dropped(far)) == (5, 0)
    assert dropped(1e7 * far[:5]) == 5
    assert dropped(np.concatenate([far, 1e7 * far[:1]])) == 1
    assert dropped(np.repeat([[0.5], [1.5]], (60, 38), axis=0) * np.ones(3)) == 60  # of the rest most are one
    for factor in (1e7, 1e294):
        with pytest.raises(InputError, match=r"left: 6 of 100 points have coordinates beyond 1e\+12 m"):
            dropped(factor * far)


@pytest.mark.parametrize(("metres", "count"), [(999.0, 0), (1001.0, 2)])
def test_beyond_a_thousand_extents_is_far(metres, count):
    """The distance is counted from both ends of the middle, which is a metre wide."""
    places = [*np.tile([1.0, 2.0], 50), 1 - metres, 2 + metres]
    assert without_outliers(Cloud(np.outer(places, [1, 0, 0])), "left").dropped == count


def test_a_spoilt_cloud_registers_as_the_sound_one_and_says_so(room, tmp_path):
    """The result has the same bits, from an array and from a file."""
    sound = register(room.source + UTM, room.target, voxel=0.1)
    spoilt = np.concatenate([room.source + UTM, np.zeros((20_000, 3)), [[1e9, 1e9, 0]]])
    write_ply(tmp_path / "a.ply", spoilt)
    for given, name in ((spoilt, "source"), (tmp_path / "a.ply", str(tmp_path / "a.ply"))):
        found = register(given, room.target, voxel=0.1)
        assert (found.T_target_source == sound.T_target_source).all()
        assert found.registered
        assert found.confidence == sound.confidence
        assert all(note.startswith(f"{name}: ") for note in found.notes[:2])
        assert found.notes[2:] == sound.notes
