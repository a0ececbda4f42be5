"""What is held of a training's steps is written at last, whatever ends the training."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pcreg.training.scalars import Scalars


def written(folder):
    events = EventAccumulator(str(folder)).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_what_is_held_is_written_when_asked_for_and_at_the_end(tmp_path):
    def train():
        with Scalars(tmp_path, 1) as scalars:
            scalars.hold({"loss": 2.0, "norm": 0.5}, 1)
            scalars.write()
            scalars.hold({"loss": 1.0}, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert written(tmp_path) == {"loss": [(1, 2.0), (2, 1.0)], "norm": [(1, 0.5)]}


def test_without_a_folder_nothing_is_written():
    with Scalars(None, 1) as scalars:
        scalars.hold({"loss": 2.0}, 1)
        scalars.write()
