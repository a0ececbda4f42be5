"""What a step gave is read when it is there, and stops the training if it is not finite."""

from types import SimpleNamespace

import pytest
import torch

from pcreg.runtime.errors import InputError
from pcreg.training.outcome import Outcome

BATCH = SimpleNamespace(names=["a->b", "c->d"], left_out=["e->f"])


def outcome(total, norm):
    loss = {"total": torch.tensor(total), "forward": torch.tensor(2.0)}
    return Outcome.of(7, BATCH, 0.25, loss, torch.tensor(norm))


def test_it_is_what_the_step_gave():
    assert outcome(1.5, 0.5).read() == {
        "loss/total": 1.5,
        "loss/forward": 2.0,
        "train/gradient_norm": 0.5,
        "train/learning_rate": 0.25,
        "train/pairs_left_out": 1,
    }


@pytest.mark.parametrize(
    ("total", "norm", "what"), [(float("nan"), 1.0, "loss is nan"), (1.0, float("inf"), "gradient is inf")]
)
def test_what_is_not_finite_is_told_with_step_and_pairs(total, norm, what):
    with pytest.raises(InputError, match=f"step 7: the {what} on a->b, c->d"):
        outcome(total, norm).read()
