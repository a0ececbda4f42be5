"""`pcreg.register` on clouds as users have them: damaged, mixed up, in other units, at other places."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from pcreg import Prior, register, verify
from pcreg.geometry.se3 import (
    random_rotation,
    rotation_about,
    rotation_error,
    se3,
    transform,
    translation_error,
)
from pcreg.io.cloud import write_ply
from tests.processes import python
from tests.rooms import stored_room

VOXEL = 0.2  # coarse: a registration in half a second


def correct(found, T_true, degrees=1.0, metres=0.06) -> bool:
    T = found.T_target_source
    return rotation_error(T, T_true) < degrees and translation_error(T, T_true) < metres


def test_files_arrays_and_tensors_give_the_same_answer(room, tmp_path):
    write_ply(tmp_path / "a.ply", room.source)
    arrays = register(room.source, room.target, voxel=VOXEL)
    assert arrays.registered
    assert correct(arrays, room.T_target_source)
    assert arrays.voxel == VOXEL
    assert arrays.matched_points.shape == (arrays.inliers, 2, 3)
    distance = transform(arrays.T_target_source, arrays.matched_points[:, 0]) - arrays.matched_points[:, 1]
    assert np.linalg.norm(distance, axis=1).max() < 1.5 * VOXEL
    others = register(tmp_path / "a.ply", torch.from_numpy(room.target), voxel=VOXEL)
    assert (others.T_target_source == arrays.T_target_source).all()


@pytest.mark.parametrize("registered", [True, False])
def test_a_pair_in_millimetres_says_so_whatever_the_verdict(room, registered):
    source, target = (
        (room.source, room.target) if registered else (room.source[::4], stored_room(1).target[::4])
    )
    found = register(source * 1000, target * 1000, voxel=100.0 if registered else 150.0)
    assert found.registered is registered
    assert any("--units mm" in note for note in found.notes)


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_a_mirrored_cloud_is_refused_and_the_reason_found(room, descriptor):
    found = register(room.source * [-1, 1, 1], room.target, descriptor=descriptor, voxel=VOXEL)
    assert not found.registered
    assert any("mirrored" in note for note in found.notes)


@pytest.mark.parametrize(("order", "shift"), [(slice(None), 0.0), (slice(None, None, -1), 25.0)])
def test_the_same_cloud_twice_is_said(room, order, shift):
    found = register(room.source, room.source[order] + shift, voxel=VOXEL, viewpoint=([0, 0, 0], [shift] * 3))
    assert found.registered
    np.testing.assert_allclose(found.T_target_source, se3(np.eye(3), np.full(3, shift)), atol=1e-6)
    assert found.notes == ("source and target hold the same points: name two different scans",)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_outliers_in_both_clouds(room, share):
    rng = np.random.default_rng(0)

    def with_outliers(points):
        count = int(share * len(points))
        return np.concatenate([points, rng.uniform(points.min(0), points.max(0), (count, 3))])

    found = register(with_outliers(room.source), with_outliers(room.target), voxel=0.08)
    assert correct(found, room.T_target_source)
    assert found.registered or share == 0.3  # then too many points may hang in the air


def test_a_room_of_few_points_is_no_street():
    """The voxel sizes that suit it are 0.12 m and more, as for scans by phones and robots."""
    room = stored_room(2)
    few = [np.random.default_rng(0).permutation(cloud)[:3000] for cloud in (room.source, room.target)]
    found = register(*few)
    assert found.registered
    assert translation_error(found.T_target_source, room.T_target_source) < 0.05


@pytest.mark.parametrize(
    "planes", [[(2, -1.5)], [(2, -1.5), (2, 1.5)], [(2, -1.5), (0, 3.0)]], ids=["one", "parallel", "crossing"]
)
def test_planes_alone_are_refused(planes):
    """Each cloud shows another part of the planes, so that only the planes themselves could match."""
    rng = np.random.default_rng(0)

    def scene(window):
        clouds = []
        for normal, offset in planes:
            points = rng.uniform(-3, 3, (4000, 3)) + window
            points[:, normal] = offset + 0.002 * rng.standard_normal(4000)
            clouds.append(points)
        return np.concatenate(clouds)

    source, target = scene([0, 0, 0]), scene([1.7, -2.3, 0])
    moved = transform(se3(random_rotation(rng), rng.uniform(-1, 1, 3)), target)
    assert not register(source, moved, voxel=0.15).registered


def test_a_bare_corridor_is_refused_and_its_direction_named():
    """10 m of walls, floor and ceiling, seen from two places along it: any shift along x fits."""
    rng = np.random.default_rng(0)

    def seen(shift):
        points = rng.uniform([-5, -1, -1.2], [5, 1, 1.2], (24_000, 3))
        side = np.arange(len(points)) % 2 + 1  # walls across y, floor and ceiling across z
        points[np.arange(len(points)), side] = rng.choice([-1, 1], len(points)) * np.array([1, 1.2])[side - 1]
        return points + 0.003 * rng.standard_normal(points.shape)

    found = register(seen(0), seen(3), voxel=0.15)
    assert not found.registered
    assert "slide along (1.00, 0.00, 0.00)" in map(str, found.evidence.observability.free)


def test_of_a_symmetric_scene_both_answers_are_given_and_a_prior_decides(room):
    """A room joined with its copy, rotated by 180 degrees about the sensor, has two right answers."""
    half = se3(rotation_about((0, 0, 1), 180), np.zeros(3))
    scene = np.concatenate([room.source, transform(half, room.source)])
    T = se3(rotation_about((1, 2, 3), 50), np.zeros(3))
    found = register(scene, transform(T, scene), voxel=VOXEL)
    assert not found.registered
    assert "two transforms fit about equally well" in found.reason
    answers = [found.T_target_source, found.alternative]
    for right in (T, T @ half):
        assert any(correct(replace(found, T_target_source=each), right) for each in answers)
        held = register(scene, transform(T, scene), voxel=VOXEL, prior=Prior(near=right, within=(0.5, 20)))
        assert held.registered
        assert correct(held, right)
        assert "two transforms fit" in verify(scene, transform(T, scene), right, voxel=VOXEL).reason


def test_an_empty_hall_that_half_a_turn_leaves_the_same_is_refused():
    """Matches propose one of the two motions by chance; without the other it would be accepted."""
    rng = np.random.default_rng(1)

    def seen():
        points, side = rng.uniform(size=(12_000, 3)), rng.integers(0, 6, 12_000)
        points[np.arange(12_000), side % 3] = side // 3
        return points * [9, 6, 3] + 0.005 * rng.standard_normal(points.shape)

    found = register(seen(), seen() @ rotation_about((1, 2, 3), 50), voxel=0.3)
    assert not found.registered
    assert "two transforms fit about equally well" in found.reason


AGAIN = """
import sys
import torch
torch.set_num_threads(4)
from pcreg import register
found = register(*sys.argv[1:], voxel=0.12)
print(found.T_target_source.tobytes().hex(), found.confidence.hex(), found.inliers)
"""


def test_the_same_answer_to_the_last_bit(room, tmp_path):
    """The answer is the same here, with one thread, and with four threads in another process."""
    paths = [tmp_path / "source.npy", tmp_path / "target.npy"]
    for path, points in zip(paths, (room.source[::2], room.target[::2]), strict=True):
        np.save(path, points)
    found = register(*paths, voxel=0.12)
    assert found.registered
    threads = {f"{name}_NUM_THREADS": "4" for name in ("OMP", "OPENBLAS", "MKL")}
    again = python("-c", AGAIN, *paths, env=os.environ | threads).split()
    assert again == [found.T_target_source.tobytes().hex(), found.confidence.hex(), str(found.inliers)]
