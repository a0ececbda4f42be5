import numpy as np
import pytest

from pcreg.registration.strategy import diagnostics
from tests.pcreg.evidences import described

RNG = np.random.default_rng(0)
FLAT = RNG.uniform(-3, 3, (2000, 2))
AROUND = RNG.uniform(0, 2 * np.pi, 2000)
ROUND = np.c_[np.cos(AROUND), np.sin(AROUND), np.zeros(2000)]
FLOOR = described(np.c_[FLAT, np.zeros(2000)], np.tile([0.0, 0.0, 1.0], (2000, 1)))
PIPE = described(np.c_[ROUND[:, :2], FLAT[:, 0]], ROUND)
SIDES = np.eye(3)[RNG.integers(0, 3, 2000)]
BALL = described(*[ROUND * np.cos(FLAT[:, :1] / 2) + np.sin(FLAT[:, :1] / 2) * [0, 0, 1]] * 2)
BOX = described(RNG.uniform(-1, 1, (2000, 3)) * (1 - SIDES) + SIDES, SIDES)


@pytest.mark.parametrize(
    ("cloud", "words"), [(FLOOR, "nearly a"), (PIPE, "all along one"), (BALL, "around an axis"), (BOX, None)]
)
def test_surfaces_that_fit_themselves_in_other_places(cloud, words):
    assert diagnostics.degenerate_surfaces(BOX, BOX) == []
    notes = diagnostics.degenerate_surfaces(cloud, BOX)
    assert len(notes) == (words is not None)
    assert all("source" in note and words in note for note in notes)


@pytest.mark.parametrize(("factor", "unit"), [(1000, "mm"), (100, "cm"), (10, None)])
def test_extents_that_differ_by_a_unit(factor, unit):
    clouds = BOX.surface, factor * BOX.surface
    for order, units in ((clouds, f"m --units {unit}"), (clouds[::-1], f"{unit} --units m")):
        notes = diagnostics.doubtful_units(*order, differ=True)
        assert [note.endswith(f"--units {units}") for note in notes] == ([True] if unit else [])
    assert diagnostics.doubtful_units(*clouds) == []


def test_clouds_as_large_as_a_town_may_be_in_millimetres():
    assert diagnostics.doubtful_units(3000 * BOX.surface, 2000 * BOX.surface)
    assert not diagnostics.doubtful_units(3000 * BOX.surface, BOX.surface)
    assert not diagnostics.doubtful_units(600 * BOX.surface, 600 * BOX.surface)
