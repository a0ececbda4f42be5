"""Poses of the scans in an .e57."""

import numpy as np

from pcreg.io.cloud import read_cloud
from tests.pcreg.io.cloud_files import POINTS, write_e57


def test_an_e57_scan_is_moved_by_its_pose(tmp_path):
    half = np.sqrt(0.5)  # a quarter turn about z: x to y, y to -x
    write_e57(tmp_path / "a.e57", POINTS, rotation=(half, 0.0, 0.0, half))
    place = np.floor(POINTS[0])
    turned = (POINTS - place) @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + place
    np.testing.assert_allclose(read_cloud(tmp_path / "a.e57").points, turned, atol=1e-6)


def test_the_pose_of_the_only_scan_of_an_e57_says_where_the_scanner_stood(tmp_path):
    import pye57

    write_e57(tmp_path / "posed.e57", POINTS)
    assert read_cloud(tmp_path / "posed.e57").viewpoint.tolist() == np.floor(POINTS[0]).tolist()
    columns = {f"cartesian{axis}": POINTS[:, n].copy() for n, axis in enumerate("XYZ")}
    for name, poses in (("unmoved", [np.zeros(3)]), ("two", [np.ones(3), np.ones(3)])):
        file = pye57.E57(str(tmp_path / f"{name}.e57"), mode="w")
        for place in poses:
            file.write_scan_raw(columns, translation=place)
        file.close()
        assert read_cloud(tmp_path / f"{name}.e57").viewpoint is None
