import numpy as np
import pytest

from pcreg.cli.demo import UNIT
from pcreg.datasets.simulated.indoor.depth_camera import BASELINE, FOCAL, STEP
from tests import rooms


@pytest.mark.parametrize(
    ("path", "simulated", "motion", "size"),
    [
        (rooms.PATH, rooms.simulated, "T_world_camera", 400_000),
        (rooms.SCANS, rooms.simulated_demo, "T_target_source", 200_000),
    ],
)
def test_the_stored_rooms_are_those_that_the_generator_makes(path, simulated, motion, size):
    """Other processors may differ by a step of disparity, and at edges."""
    made = simulated()
    with np.load(path) as stored:
        np.testing.assert_allclose(made[motion], stored[motion], atol=1e-9)
        steps = [FOCAL * BASELINE / (UNIT * each["depth"]).clip(0.1) / STEP for each in (made, stored)]
    assert (np.abs(steps[0] - steps[1]) < 2).mean() > 0.999
    assert path.stat().st_size < size
