import numpy as np
import pytest

from pcreg.geometry.se3 import se3
from pcreg.registration.judge.free_space import FreeSpace, View, free_space_violation, views_of


def wall(distance: float, half: float = 2.0) -> np.ndarray:
    """A wall across the x axis, a point every 2 cm."""
    y, z = np.meshgrid(*[np.arange(-half, half, 0.02)] * 2)
    return np.stack([np.full(y.size, distance), y.ravel(), z.ravel()], axis=1)


@pytest.mark.parametrize(("distance", "fraction"), [(2.0, 1.0), (3.8, 0.0), (4.0, 0.0), (6.0, 0.0)])
def test_only_what_is_clearly_in_front_intrudes(distance, fraction):
    points = wall(distance, half=0.5)
    assert free_space_violation(points, [View.of(wall(4.0))], margin=0.3) == fraction


def test_the_fraction_counts_points():
    points = np.concatenate([wall(2.0, 0.2), wall(4.0, 0.2)[:100]])
    assert free_space_violation(points, [View.of(wall(4.0))], margin=0.3) == pytest.approx(400 / 500)


def test_directions_that_were_not_seen_do_not_count():
    behind = wall(-2.0)
    assert free_space_violation(behind, [View.of(wall(4.0))], margin=0.3) == 0
    both = np.concatenate([wall(2.0, 0.2), behind])
    assert free_space_violation(both, [View.of(wall(4.0))], margin=0.3) == 1


def test_of_two_surfaces_in_one_direction_the_nearer_counts():
    scan = np.concatenate([wall(4.0), wall(1.0, half=0.4)])
    assert free_space_violation(wall(2.0, half=0.4), [View.of(scan)], margin=0.3) == 0


def test_a_point_at_the_sensor_is_no_error():
    assert free_space_violation(np.zeros((1, 3)), [View.of(wall(4.0))], margin=0.3) == 1


def test_a_sensor_may_stand_anywhere():
    away = np.array([10.0, -3.0, 1.0])
    points = np.concatenate([wall(2.0, 0.2), wall(4.0, 0.2)[:100]]) + away
    assert free_space_violation(points, [View.of(wall(4.0) + away, away)], margin=0.3) == pytest.approx(
        400 / 500
    )


def test_a_motion_is_held_against_the_free_space_of_both_scans():
    """The source's wall comes to stand in front of the target's, which is then behind it."""
    free = FreeSpace(wall(4.0, half=0.5), wall(4.0), margin=0.3)
    nearer = se3(np.eye(3), np.array([-2.0, 0.0, 0.0]))
    assert free(np.stack([np.eye(4), nearer])) == pytest.approx([0, 1 / 2])  # one way of two
    away = np.array([10.0, -3.0, 1.0])
    free = FreeSpace(wall(4.0, half=0.5) + away, wall(4.0) - away, 0.3, (away, -away))
    there = se3(np.eye(3), -2 * away)
    assert free(np.stack([there, nearer @ there])) == pytest.approx([0, 1 / 2])


def test_a_map_of_two_scans_is_two_views():
    """Of a sensor that went from x = 0 to 10: what stood behind it by then is not in its way."""
    near, far = wall(4.0), wall(4.0) + np.array([10.0, 0, 0])
    places = np.repeat([[0.0, 0, 0], [10.0, 0, 0]], [len(near), len(far)], axis=0)
    views = views_of(np.concatenate([near, far]), places, margin=0.3)
    assert [view.origin[0] for view in views] == [0, 10]
    assert free_space_violation(np.concatenate([near, far]), views, margin=0.3) == 0
    board = wall(2.0, half=0.4)
    assert free_space_violation(board, views, margin=0.3) == 1  # seen by the first; behind the second
    free = FreeSpace(board, np.concatenate([near, far]), 0.3, (np.zeros(3), places))
    assert free(np.eye(4)[None]) >= 0.5


def test_of_many_views_those_of_most_points_are_kept():
    places = np.repeat(np.arange(20.0)[:, None] * [1, 0, 0], np.arange(1, 21), axis=0)
    views = views_of(places + np.array([0, 0, 1]), places, margin=0.3)
    assert sorted(view.origin[0] for view in views) == list(range(12, 20))
