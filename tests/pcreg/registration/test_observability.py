import numpy as np
import pytest

from pcreg.geometry.se3 import random_rotation
from pcreg.registration.judge.observability import MIN_OBSERVABILITY, growth_observability, observability


def sheet(normal, offset, across, rng, count=500):
    """A rectangle across the two other axes, as points and normals."""
    points = rng.uniform(-1, 1, (count, 3)) * across
    points[:, normal] = offset
    return points, np.tile(np.eye(3)[normal], (count, 1))


def joined(*parts):
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def ball(rng):
    normals = rng.standard_normal((2000, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return 2 * normals + [5, 0, 0], normals


def pipe(rng):
    angle = rng.uniform(0, 2 * np.pi, 2000)
    normals = np.stack([0 * angle, np.cos(angle), np.sin(angle)], axis=1)
    return normals + rng.uniform(-4, 4, (2000, 1)) * np.eye(3)[0], normals


def corridor(rng):
    return joined(*(sheet(n, at, [10, 1, 1.2], rng) for n, at in ((1, -1), (1, 1), (2, -1.2), (2, 1.2))))


def box(rng):
    return joined(corridor(rng), sheet(0, 10, [10, 1, 1.2], rng, 200))


SCENES = {
    "plane": (lambda rng: sheet(2, 3.0, [2, 2, 2], rng), ["slide", "slide", "turn"], [2]),
    "corridor": (corridor, ["slide"], [0]),
    "crossing planes": (
        lambda rng: joined(sheet(1, 0, [3, 1, 1], rng), sheet(2, 0, [3, 1, 1], rng)),
        ["slide"],
        [0],
    ),
    "pipe": (pipe, ["slide", "turn"], [0, 0]),
    "ball": (ball, ["turn"] * 3, []),
    "box": (box, [], []),
}


@pytest.mark.parametrize("scene", SCENES)
def test_what_a_scene_leaves_free(scene):
    """The last axes are those of the table; a rotated and shifted scene has the rotated axes."""
    rng = np.random.default_rng(0)
    make, kinds, axes = SCENES[scene]
    points, normals = make(rng)
    R = random_rotation(rng)
    for turn, shift in ((np.eye(3), 0.0), (R, 100.0)):
        found = observability(points @ turn.T + shift, normals @ turn.T)
        assert [freedom.kind for freedom in found.free] == kinds
        assert (found.min_observability < 0.01) == bool(kinds)
        for freedom, axis in zip(found.free[len(found.free) - len(axes) :], axes, strict=True):
            assert abs(turn[:, axis] @ freedom.axis) > 0.999


@pytest.mark.parametrize(("count", "kinds"), [(20, ["slide"]), (21, [])])
def test_from_one_percent_of_the_points_on_a_wall_holds_a_corridor(count, kinds):
    rng = np.random.default_rng(0)
    points, normals = joined(corridor(rng), sheet(0, 10, [10, 1, 1.2], rng, count))
    found = observability(points, normals)
    assert [freedom.kind for freedom in found.free] == kinds
    assert found.min_observability == pytest.approx(count / len(points))


@pytest.mark.parametrize(
    "scene", [box, lambda rng: joined(ball(rng), *(sheet(n, 0, [1, 1, 1], rng) for n in (0, 1, 2)))]
)
def test_firmness_has_no_unit_and_no_sign_of_normals(scene):
    rng = np.random.default_rng(0)
    points, normals = scene(rng)
    signs = rng.choice([-1.0, 1.0], (len(points), 1))
    assert observability(1000 * points, signs * normals).min_observability == pytest.approx(
        observability(points, normals).min_observability
    )
    assert observability(points[:0], normals[:0]).min_observability == 0


def corner(rng):
    return joined(*(sheet(axis, 2.0, [1, 1, 1], rng) for axis in range(3)))


def cube(rng):
    return joined(corner(rng), *(sheet(axis, -2.0, [1, 1, 1], rng) for axis in range(3)))


def test_opposite_walls_tell_the_scale_and_what_lies_on_itself_when_it_grows_does_not():
    def growth(scene):
        return growth_observability(*scene(np.random.default_rng(0))) / MIN_OBSERVABILITY

    assert max(growth(SCENES["plane"][0]), growth(corner)) < 1
    assert min(growth(corridor), growth(cube)) > 2


def test_a_ball_grows_along_its_normals():
    points, normals = ball(np.random.default_rng(0))
    assert growth_observability(points, normals) == pytest.approx(1, abs=0.01)
    assert growth_observability(1000 * points, -normals) == pytest.approx(1, abs=0.01)
