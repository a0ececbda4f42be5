"""Clouds merged from several scans, with a viewpoint for each point."""

import numpy as np
import pytest

from pcreg import FPFH, register
from pcreg.datasets.simulated import objects
from pcreg.geometry.se3 import residuals, rotation_about, se3, transform
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.preprocess import describe
from pcreg.registration.registrar import Registrar
from pcreg.runtime.errors import InputError
from tests.pcreg.registration.test_api import correct

VOXEL = 0.1


@pytest.fixture(scope="module")
def merged(room) -> tuple[np.ndarray, np.ndarray]:
    """Both scans of a room in the frame of the second, and the viewpoint of each point (N, 3)."""
    T = room.T_target_source
    points = np.concatenate([transform(T, room.source), room.target])
    return points, np.repeat([T[:3, 3], np.zeros(3)], [len(room.source), len(room.target)], axis=0)


def thin_wall() -> tuple[np.ndarray, np.ndarray]:
    """A wall 30 cm thick, seen from x = -3 and from x = 3: points and viewpoints (N, 3)."""
    y, z = (grid.ravel() for grid in np.meshgrid(*[np.arange(-2, 2, 0.04)] * 2))
    sides = [np.c_[np.full_like(y, x), y, z] for x in (-0.15, 0.15)]
    return np.concatenate(sides), np.repeat([[-3.0, 0, 0], [3.0, 0, 0]], len(y), axis=0)


def test_normals_point_to_where_each_point_was_seen_from():
    points, places = thin_wall()
    found = describe(points, FPFH(0.08), viewpoint=Viewpoint(places, known=True))
    front = found.surface[:, 0] < 0
    assert (found.normals[front, 0] < -0.9).all()
    assert (found.normals[~front, 0] > 0.9).all()
    middle = describe(points, FPFH(0.08), viewpoint=Viewpoint(np.array([-3.0, 0, 0]), known=True))
    assert (middle.normals[:, 0] < -0.9).all()  # as if the back had been seen through the wall


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_descriptors_of_a_scan_do_not_depend_on_how_its_viewpoint_is_said(room, descriptor):
    points = room.source[::2]
    describe = Registrar(descriptor=descriptor).at(VOXEL).descriptor.describe
    one, each = describe(points), describe(points, np.zeros_like(points))
    np.testing.assert_array_equal(each.features, one.features)
    other = describe(points, np.full_like(points, 20.0))
    assert not np.allclose(other.features, one.features, atol=0.1)


def test_a_scan_is_registered_to_a_map(room, merged):
    """Rows of NaN and zeros are left out together with their viewpoints, whether those are NaN or not."""
    points, places = merged
    points = np.concatenate([[[np.nan, 0, 0]], np.zeros((3, 3)), points])
    places = np.concatenate([np.full((2, 3), np.nan), np.full((2, 3), 1e3), places])
    T = se3(rotation_about((1, 2, 3), 50), np.array([1.0, -2.0, 0.5]))
    registrar = Registrar(voxel=VOXEL)
    target = registrar.prepare(points, viewpoint=places)
    found = registrar.register(registrar.prepare(transform(T, room.target), viewpoint=T[:3, 3]), target)
    assert found.registered
    assert found.evidence.same_side_ratio > 0.95
    assert correct(found, np.linalg.inv(T))
    assert found.to_dict()["viewpoints"]["target"] == "per point"


def test_a_scan_is_registered_to_an_object_seen_from_all_sides(monkeypatch):
    """From the one place that is estimated, within the object, half of its normals would point inwards."""
    recording = objects.record(7, 8)
    scans = [scan.double().numpy() for scan in recording.clouds]
    whole = np.concatenate([transform(recording.motion(n, 0), each) for n, each in enumerate(scans)])
    scan = scans[0]
    T = se3(rotation_about((3, 1, 2), 70), np.array([0.3, -0.2, 0.4]))
    found = register(transform(T, scan), whole)
    assert found.registered
    size = np.linalg.norm(np.ptp(whole, axis=0))
    assert residuals(found.T_target_source, transform(T, scan), scan).mean() < 0.01 * size
    monkeypatch.setattr("pcreg.geometry.viewpoint.MAX_WITHIN_RADII", 0.0)
    assert not register(transform(T, scan), whole).registered


@pytest.mark.parametrize(("number", "words"), [(np.nan, "hold NaN"), (1e13, r"beyond 1e\+12 m")])
def test_a_viewpoint_of_a_file_or_a_caller_is_a_place(room, tmp_path, number, words):
    places = np.zeros_like(room.source)
    places[5, 1] = number
    np.savez(tmp_path / "seen.npz", points=room.source, viewpoints=places)
    for source, option in ((room.source, (places, "auto")), (tmp_path / "seen.npz", "auto")):
        with pytest.raises(InputError, match=words):
            register(source, room.target, voxel=VOXEL, viewpoint=option)
