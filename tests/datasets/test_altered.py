"""Thinned and moved data sets: what is left of a scan, and figures that do not depend on the frame."""

from dataclasses import replace

import numpy as np
import pytest

from pcreg.datasets.altered import EveryBeam, Mixture, Moved, beam_numbers
from pcreg.evaluation.trial import motion_errors
from pcreg.geometry.se3 import inverse, random_rotation, rotation_about, se3, transform
from pcreg.io.pairs import Pair
from pcreg.runtime.errors import InputError

RNG = np.random.default_rng(4)
MOTION = se3(random_rotation(RNG), RNG.normal(size=3))


class Scans:
    """Three scans by 16 beams; the second is the target of one pair and the source of another."""

    name = "scans"
    left_out = ("a->z (z is missing)",)
    outdoor = True
    viewpoint = "sensor"

    def __init__(self):
        self.scans = {"a": scan(VLP16)[0]}
        self.scans |= {name: transform(MOTION, self.scans["a"]) for name in ("b", "c")}
        information = np.diag([5.0, 5, 5, 10, 10, 10])
        self.pairs = [Pair("a", "b", MOTION, information=information), Pair("b", "c", np.eye(4))]

    def cloud(self, name):
        return self.scans[name]


def test_the_source_keeps_every_fourth_beam_and_the_target_all():
    scans = Scans()
    scans.scans["b"] = scan(VLP16, seed=1)[0]
    thinned = EveryBeam(scans, 4)
    assert (thinned.name, thinned.left_out, thinned.viewpoint) == ("scans, beams=4", scans.left_out, "sensor")
    for pair, whole in zip(thinned.pairs, scans.pairs, strict=True):
        source = scans.cloud(whole.source).reshape(16, -1, 3)
        np.testing.assert_array_equal(thinned.cloud(pair.source), source[::4].reshape(-1, 3))
        np.testing.assert_array_equal(thinned.cloud(pair.target), scans.cloud(whole.target))
        assert pair.T_target_source is whole.T_target_source


def test_both_clouds_may_keep_every_fourth_beam():
    scans = Scans()
    scans.scans["b"] = scan(VLP16, seed=1)[0]
    thinned = EveryBeam(scans, 4, both=True)
    assert thinned.name == "scans, beams=4 of both"
    assert len(thinned.cloud(thinned.pairs[0].source)) == len(scans.cloud("a")) // 4
    assert len(thinned.cloud(thinned.pairs[0].target)) == len(scans.cloud("b")) // 4


def test_clouds_without_enough_beams_are_refused():
    scans = Scans()
    with pytest.raises(InputError, match=r"a: 16 beams can be separated, and data.beams=16 needs"):
        EveryBeam(scans, 16).cloud("beams:a")
    scans.scans["a"] = np.random.default_rng(0).normal(size=(5000, 3))
    with pytest.raises(InputError, match="a: no beams can be separated"):
        EveryBeam(scans, 4).cloud("beams:a")
    for step in (0, 2.5, float("inf")):
        with pytest.raises(InputError, match=f"data.beams={step}: give a whole number"):
            EveryBeam(scans, step)
    scans.outdoor = False
    with pytest.raises(InputError, match=r"data.beams=4: scans are not LiDAR scans"):
        EveryBeam(scans, 4)


def test_moved_clouds_keep_their_truth():
    scans = Scans()
    moved = Moved(scans, 10.0, seed=3)
    offsets = {name: moved.cloud(name)[0] - scans.cloud(name)[0] for name in "abc"}
    assert [np.linalg.norm(each) for each in offsets.values()] == pytest.approx([10.0] * 3)
    assert np.linalg.norm(offsets["b"] - offsets["c"]) > 1  # each in a direction of its own
    for pair in moved.pairs:
        there = transform(pair.T_target_source, moved.cloud(pair.source))
        np.testing.assert_allclose(there, moved.cloud(pair.target), atol=1e-9)
    assert (moved.viewpoint, moved.name) == ("auto", "scans, moved=10")
    np.testing.assert_array_equal(moved.cloud("a"), Moved(Scans(), 10.0, seed=3).cloud("a"))
    assert not np.allclose(moved.cloud("a"), Moved(scans, 10.0, seed=4).cloud("a"), atol=1)
    with pytest.raises(InputError, match=r"data.moved=-1: give metres"):
        Moved(scans, -1.0)


@pytest.mark.parametrize("error", [np.eye(4), se3(rotation_about([0, 0, 1], 2.0), np.array([0.1, 0, 0]))])
def test_figures_do_not_depend_on_the_move(error):
    """The figures of the truth, and of an answer that is wrong by as much in either frame."""
    scans = Scans()
    still, twice = scans.pairs[0], Moved(Moved(scans, 1000.0), 500.0)
    moved = twice.pairs[0]
    answer = still.T_target_source @ error
    source, target = moved.moves
    there = target @ answer @ inverse(source)
    figures = motion_errors(still, answer, scans.cloud("a"))
    again = motion_errors(moved, there, twice.cloud("a"))
    assert figures["RTE"] == pytest.approx(np.linalg.norm(error[:3, 3]), abs=1e-9)
    for name in ("RTE", "RRE", "rmse", "information_rmse"):
        assert again[name] == pytest.approx(figures[name], abs=1e-5)
    assert replace(moved, moves=None).before_moves(there) is there


class Numbers:
    """Pairs of clouds that hold one number each, their own."""

    def __init__(self, first, count):
        self.pairs = [Pair(f"{n}", f"{n}", np.eye(4)) for n in range(first, first + count)]

    def cloud(self, name):
        assert name in {pair.source for pair in self.pairs}
        return np.full((1, 3), float(name))


@pytest.mark.parametrize(
    ("share", "replayed"), [(0.5, [0, 1, 2, 3, 4, 5]), (0.25, [0, 5]), (0.7, [0, 1, 2, 3, 4, 5] * 2 + [0, 5])]
)
def test_the_share_is_of_the_whole_and_clouds_come_from_where_they_are(share, replayed):
    mixture = Mixture(Numbers(3, 6), Numbers(0, 6), share)  # both have clouds called 3, 4 and 5
    sources, targets = (
        [int(mixture.cloud(name)[0, 0]) for name in names]
        for names in zip(*((pair.source, pair.target) for pair in mixture.pairs), strict=True)
    )
    assert sources == targets == [3, 4, 5, 6, 7, 8, *replayed]


def test_what_cannot_be_mixed_is_refused():
    with pytest.raises(InputError, match="replay_share=1: a fraction"):
        Mixture(Numbers(0, 2), Numbers(0, 2), 1.0)
    with pytest.raises(InputError, match="replay: the data set has no pairs"):
        Mixture(Numbers(0, 2), Numbers(0, 0), 0.5)


VLP16 = np.linspace(-15, 15, 16)
HDL64 = np.concatenate([np.linspace(2, -8.33, 32), np.linspace(-8.83, -24.33, 32)])  # not evenly spaced


def scan(elevations, columns=400, wobble=0.0, seed=0, walls=False):
    """Points (beams x columns, 3), beam after beam in turns about the z axis, and the beam of each.

    Ranges are random, or those of four `walls`.
    """
    rng = np.random.default_rng(seed)
    shape = len(elevations), columns
    azimuth = np.broadcast_to(np.linspace(0, 2 * np.pi, columns, endpoint=False), shape)
    azimuth = azimuth + rng.uniform(0, 1e-3, shape)
    elevation = np.radians(np.asarray(elevations)[:, None] + rng.normal(0, wobble, shape))
    flat = np.cos(elevation)
    rays = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], -1)
    ranges = 8 / np.abs(rays[..., :2]).max(-1) if walls else rng.uniform(2, 60, shape)
    points = rays * ranges[..., None]
    return points.reshape(-1, 3), np.repeat(np.arange(len(elevations)), columns)


@pytest.mark.parametrize("elevations", [VLP16, np.sort(HDL64)], ids=["16 beams", "64 beams"])
def test_points_in_any_order_are_told_apart_by_elevation(elevations):
    points, beams = scan(elevations, wobble=0.04)
    order = np.random.default_rng(1).permutation(len(points))
    found = beam_numbers(points[order])
    assert found.max() + 1 == len(elevations)
    assert (found == beams[order]).mean() > 0.999


def test_a_file_written_beam_after_beam_is_counted_in_its_order():
    points, beams = scan(HDL64, walls=True)
    points[:, 2] += np.where(beams < 32, 0.2, 0.05)  # lasers stand above one another: elevations overlap
    np.testing.assert_array_equal(beam_numbers(points), beams)
    nothing = [100, 10_000]  # rows of zeros, where nothing came back
    points[nothing], beams[nothing] = 0, -1
    np.testing.assert_array_equal(beam_numbers(points), beams)
    points = np.delete(points, nothing, axis=0)
    clockwise = points * [1, -1, 1]
    np.testing.assert_array_equal(beam_numbers(clockwise), np.delete(beams, nothing))


def test_what_has_no_beams_is_said_to_have_none():
    rng = np.random.default_rng(0)
    elevation, azimuth = rng.uniform(-0.4, 0.4, (2, 20_000))
    ball = np.stack([np.cos(elevation) * np.cos(azimuth), np.sin(azimuth), np.sin(elevation)], 1)
    assert beam_numbers(ball) is None
    assert beam_numbers(np.empty((0, 3))) is None
