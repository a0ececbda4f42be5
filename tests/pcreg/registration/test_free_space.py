"""Free space of scans of walls."""

import numpy as np
import pytest

from pcreg.geometry.se3 import se3
from pcreg.registration.judge.free_space import UNSEEN, FreeSpace, RangeImage, free_space_violation, views_of
from pcreg.registration.judge.overlap import Overlap

AWAY = np.array([10.0, -3.0, 1.0])


def wall(distance: float, half: float = 2.0) -> np.ndarray:
    """A wall across the x axis, a point every 2 cm."""
    y, z = np.meshgrid(*[np.arange(-half, half, 0.02)] * 2)
    return np.stack([np.full(y.size, distance), y.ravel(), z.ravel()], axis=1)


@pytest.mark.parametrize(
    ("points", "fraction"),
    [
        (wall(2.0, half=0.5), 1.0),
        (wall(3.8, half=0.5), 0.0),  # within the margin
        (wall(6.0, half=0.5), 0.0),
        (np.concatenate([wall(2.0, 0.2), wall(4.0, 0.2)[:100]]), 400 / 500),
        (wall(-2.0), 0.0),  # points in directions without measurements do not count
        (np.concatenate([wall(2.0, 0.2), wall(-2.0)]), 1.0),
        (np.zeros((1, 3)), 1.0),  # at the sensor
    ],
)
@pytest.mark.parametrize("place", [np.zeros(3), AWAY])
def test_points_clearly_in_front_of_a_surface_are_counted(points, fraction, place):
    found = free_space_violation(points + place, [RangeImage.of(wall(4.0) + place, place)], margin=0.3)
    assert found == pytest.approx(fraction)


def test_of_two_surfaces_in_one_direction_the_nearer_counts():
    scan = np.concatenate([wall(4.0), wall(1.0, half=0.4)])
    assert free_space_violation(wall(2.0, half=0.4), [RangeImage.of(scan)], margin=0.3) == 0


def test_a_motion_is_held_against_the_free_space_of_both_scans():
    """The motion puts the source's wall in front of the target's wall."""
    nearer = se3(np.eye(3), np.array([-2.0, 0.0, 0.0]))
    free = FreeSpace(wall(4.0, half=0.5) + AWAY, wall(4.0) - AWAY, 0.3, (AWAY, -AWAY))
    there = se3(np.eye(3), -2 * AWAY)
    assert free(np.stack([there, nearer @ there])) == pytest.approx([0, 1 / 2])  # one way of two


def test_a_map_of_two_scans_is_two_views():
    """The sensor went from x = 0 to 10: a board behind the later view contradicts only the first."""
    near, far = wall(4.0), wall(4.0) + np.array([10.0, 0, 0])
    places = np.repeat([[0.0, 0, 0], [10.0, 0, 0]], [len(near), len(far)], axis=0)
    places[::2, 0] += 0.1
    both = np.concatenate([near, far])
    views = views_of(both, places, margin=0.3)
    assert [view.origin[0] for view in views] == pytest.approx([0.05, 10.05])  # of places 0.1 m apart
    assert free_space_violation(both, views, margin=0.3) == 0
    board = wall(2.0, half=0.4)
    assert free_space_violation(board, views, margin=0.3) == 1  # seen by the first; behind the second
    free = FreeSpace(board, both, 0.3, (np.zeros(3), places))
    assert free(np.eye(4)[None]) >= 0.5
    ways = Overlap.of(board, both, both, np.eye(4), 0.3), (np.ones(len(board)), np.ones(len(both)))
    assert free.sights(np.eye(4), *ways)[0].against == len(board)


def sight(source: np.ndarray, target: np.ndarray):
    """Source as seen by the sensor of a target, both where they are; all points count as curved."""
    upright, weights = np.tile([0.0, 0, 1], (len(target), 1)), (np.ones(len(source)), np.ones(len(target)))
    overlap = Overlap.of(source, target, upright, np.eye(4), 0.3)
    return FreeSpace(source, target, 1.2).sights(np.eye(4), overlap, weights)[0]


def test_what_stands_half_of_the_margin_before_a_wall_is_against_a_motion_unless_it_touches():
    """Three of the ten columns of a board are within 30 cm of a strip beside the board."""
    z = np.arange(-0.1, 0.1, 0.02)
    strip = np.stack([np.full(10, 3.1), np.full(10, 0.33), z], axis=1)
    found = sight(wall(3.1, half=0.1), np.concatenate([wall(4.0), strip]))
    assert (found.in_front, found.covered, found.against, found.curved_against) == (0, 100, 70, 70)
    assert (found.confirmed, found.curved_confirmed) == (30, 30)


def test_ground_between_the_beams_of_a_sparse_lidar_is_not_in_free_space():
    """A board that stands on the ground is in free space, before a wall that many beams see."""

    def ground(elevations: np.ndarray) -> np.ndarray:
        low, azimuth = np.meshgrid(np.radians(elevations), np.radians(np.arange(0, 360, 0.5)))
        far = 1.7 / np.tan(low)
        points = np.stack([far * np.cos(azimuth), far * np.sin(azimuth), np.full(far.shape, -1.7)], -1)
        return points.reshape(-1, 3)

    sparse, dense = ground(np.arange(5, 30, 3.4)), ground(np.arange(5, 30, 0.25))
    board = wall(2.0, half=0.5)
    for target, source, number in ((sparse, dense, 0), (wall(4.0), board, len(board))):
        found = sight(source, target)
        assert found.against == number
        assert found.curved_against == pytest.approx(number, abs=0.01 * len(source))


def test_points_between_those_of_a_far_wall_are_not_beside_it():
    """A board before the wall is displaced, and so are points just behind a wall without gaps."""
    beams, dense = (
        np.stack([np.full(y.size, 30.0), y.ravel(), z.ravel()], axis=1)
        for y, z in (np.meshgrid(np.arange(-5, 5, 0.3), np.arange(-4, 4, step)) for step in (1.1, 0.3))
    )
    assert sight(dense, beams).curved_against == 0
    assert sight(dense - np.array([4, 0, 0]), beams).curved_against > 0.6 * len(dense)  # all that is seen
    assert sight(dense + np.array([0.5, 0, 0]), dense).curved_against > 0.8 * len(dense)
    assert sight(dense + np.array([0.9, 0, 0]), dense).curved_against == 0


def test_a_sensor_sees_as_much_behind_it_as_before_it():
    """Two boards stand before a wall, side by side, with and without a gap between them."""
    board, wide = wall(2.0, half=0.3), wall(4.0)
    wider = sight(wide / 2, board * 2)
    assert wider.against == wider.covered < len(wide)
    for apart in (0.6, 1.0):
        boards = np.concatenate([board + np.array([0, y, 0]) for y in (-apart / 2, apart / 2)])
        before, behind = (sight(turn * boards, turn * wide) for turn in ([1, 1, 1], [-1, -1, 1]))
        assert behind == before
        assert before.against == (len(boards) if apart == 0.6 else len(board))


def test_gaps_of_a_surface_as_near_as_its_points_are_apart_do_not_make_its_view_sparse():
    near = wall(1.0, half=0.8)[::7]
    view = RangeImage.of(near, spacing=0.1)
    assert not view.gaps[view.image > UNSEEN].any()
    assert RangeImage.of(4 * near, spacing=0.1).gaps.all()


def test_of_many_views_those_of_most_points_are_kept():
    places = np.repeat(np.arange(20.0)[:, None] * [1, 0, 0], np.arange(1, 21), axis=0)
    views = views_of(places + np.array([0, 0, 1]), places, margin=0.3)
    assert sorted(view.origin[0] for view in views) == list(range(12, 20))
