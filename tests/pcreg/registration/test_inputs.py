"""Clouds and settings as callers have them: accepted, or refused in a sentence."""

import numpy as np
import pytest
import torch

from pcreg import register
from pcreg.geometry.se3 import rigid_motion
from pcreg.io.cloud import write_ply
from pcreg.registration.clouds.inputs import as_cloud, check_viewpoint
from pcreg.runtime.errors import InputError

POINTS = np.random.default_rng(0).normal(scale=4, size=(500, 3))


@pytest.mark.parametrize("columns", [3, 4, 6, 32])
def test_columns_after_the_third_are_ignored(columns):
    rows = np.concatenate([POINTS, np.full((500, columns - 3), np.nan)], axis=1)
    for given in (rows, torch.from_numpy(rows), rows.tolist()):
        np.testing.assert_array_equal(as_cloud(given, "left").points, POINTS)


def test_fields_by_name_as_ros_reads_them():
    rows = np.empty(500, dtype=[("ring", "u2"), ("z", "f4"), ("y", "f8"), ("x", "f8")])
    rows["x"], rows["y"], rows["z"] = POINTS.T
    np.testing.assert_allclose(as_cloud(rows, "left").points, POINTS, atol=1e-6)
    with pytest.raises(InputError, match="left"):
        as_cloud(rows[["ring", "x", "y"]], "left")


def test_point_clouds_of_open3d():
    import open3d

    old = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(POINTS))
    new = open3d.t.geometry.PointCloud(POINTS)
    for cloud in (old, new):
        np.testing.assert_array_equal(as_cloud(cloud, "left").points, POINTS)
    assert len(as_cloud(open3d.geometry.PointCloud(), "left").points) == 0
    with pytest.raises(InputError, match="left"):
        as_cloud(open3d.t.geometry.PointCloud(), "left")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int32])
def test_tensors_of_other_types(dtype):
    tensor = torch.from_numpy(POINTS + 100).to(dtype)  # whole numbers are no zeros
    np.testing.assert_array_equal(as_cloud(tensor, "left").points, tensor.double().numpy())
    trained = torch.eye(4, requires_grad=True)  # NumPy refuses it
    np.testing.assert_array_equal(rigid_motion(trained, "T"), np.eye(4))
    np.testing.assert_array_equal(check_viewpoint(trained[0, :3]), [1, 0, 0])


@pytest.mark.parametrize("unit", METRES := {"m": 1, "cm": 0.01, "mm": 0.001, "ft": 0.3048, "in": 0.0254})
def test_the_array_of_the_caller_is_not_changed_nor_kept(unit):
    given = POINTS.copy()
    cloud = as_cloud(given, "left", unit)
    np.testing.assert_allclose(cloud.points, METRES[unit] * given)
    assert cloud.units == unit
    cloud.points[:] = 0
    np.testing.assert_array_equal(given, POINTS)


def test_the_viewpoints_of_the_caller_are_not_kept():
    given = np.zeros((500, 3))
    option = check_viewpoint(given)
    given += 50
    assert not option.any()


OF_OTHER_SHAPES = [POINTS[:, :2], POINTS.T, np.zeros((500, 40, 3)), np.zeros((20, 40))]
OF_OTHER_TYPES = [POINTS > 0, POINTS.astype(object), POINTS.astype(complex)]
NO_ARRAYS = [None, 5, b"a.ply", {}, [], [[1, 2], [3]], torch.from_numpy(POINTS).to_sparse()]


@pytest.mark.parametrize("cloud", [*OF_OTHER_SHAPES, *OF_OTHER_TYPES, *NO_ARRAYS])
def test_what_is_no_cloud(cloud):
    with pytest.raises(InputError, match="left: ") as caught:
        as_cloud(cloud, "left")
    assert "\n" not in str(caught.value)


def test_masked_rows_are_left_out():
    masked = np.ma.masked_array(POINTS, mask=np.arange(1500).reshape(500, 3) < 6)
    np.testing.assert_array_equal(as_cloud(masked, "left").points, POINTS[2:])


def test_the_home_folder_in_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write_ply(tmp_path / "a.ply", POINTS)
    np.testing.assert_array_equal(as_cloud("~/a.ply", "left").points, POINTS)
    with pytest.raises(InputError, match=str(tmp_path / "nowhere")):
        register(POINTS, POINTS, weights="~/nowhere.safetensors", voxel=0.5)
    with pytest.raises(InputError, match="no such file"):
        as_cloud("~nobody_of_that_name/a.ply", "left")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *(({"seed": seed}, "seed=") for seed in (-1, 1.5, "0", None, True, np.True_)),
        *(({"voxel": voxel}, "voxel") for voxel in (0, -1.0, np.nan, np.inf, 1e300, "0.1", True, np.True_)),
        *(
            ({"units": units}, "mm")
            for units in ("mile", ("m",), ("m", "m", "m"), None, 5, ("m", None), ([], []))
        ),
        *(({"columns": columns}, "columns=") for columns in ("4", 4.5, True)),
        *(({"descriptor": descriptor}, "fpfh") for descriptor in ("sift", None, [])),
        *(({"device": device}, "device=") for device in ("gpu", None)),
        ({"weights": 5}, "weights="),
        *(({"scale": scale}, "scale=") for scale in (2.0, 1, None)),
        ({"viewpoint": (0, 0)}, r"viewpoint \(0, 0\) is unknown"),
    ],
)
def test_settings_that_cannot_be_used(settings, words):
    with pytest.raises(InputError, match=words) as caught:
        register(POINTS, POINTS, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("metres", [4, 60, 160])  # a room, and scans of a LiDAR
def test_metres_that_are_called_millimetres_are_noted(metres):
    points = np.random.default_rng(0).uniform(0, metres, (20_000, 3))
    (note,) = as_cloud(points, "source", "mm").notes
    words = f"only {metres} mm across in mm: if its coordinates are metres, give m to --units"
    assert note == words
    assert as_cloud(1000 * points, "source", "mm").notes == as_cloud(points, "source").notes == ()


def test_coordinates_that_32_bits_round_are_noted():
    far = np.random.default_rng(0).uniform(0, 4, (100, 3)) + np.array([5e5, 5.4e6, 300])
    for rounded, unit in ((far, "m"), (far, "ft"), ([5e5, 5.4e6, 300] + far % 0.1, "m")):  # all 5.4e6 north
        note = as_cloud(np.float32(rounded), "source", unit).notes[-1]
        assert note.startswith(f"coordinates are rounded to 0.5 {unit}, as 32-bit numbers far from the")
    with pytest.raises(InputError, match=r"needed; .*; coordinates are rounded to 0.5 m, as"):
        register(far.astype(np.float32), far, voxel=0.1)
    for exact in (far, far.round(), far.astype(int), (far - far[0]).astype(np.float32)):
        assert as_cloud(exact, "source").notes == ()


@pytest.mark.parametrize("units", ["mm", ("mm", "mm"), ["mm", "mm"]])
def test_one_unit_for_both_clouds_and_numbers_of_numpy(units):
    given = {"voxel": np.float32(3), "seed": np.int64(7), "descriptor": "fpfh"}
    found = register(1000 * POINTS, 1000 * POINTS, units=units, **given)
    np.testing.assert_allclose(found.T_target_source, np.eye(4), atol=1e-6)
    assert (found.voxel, type(found.voxel)) == (3, float)  # for JSON


@pytest.mark.parametrize(
    "option",
    ["Auto", (1, 2), (1, 2, np.nan), (1, 2, 1e30), [[[1, 2, 3]]], np.zeros((900, 2)), None, 3.0, "1,2,3"],
)
def test_what_is_no_viewpoint(option):
    with pytest.raises(InputError, match="use auto, sensor, or x, y, z") as caught:
        check_viewpoint(option)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 140
