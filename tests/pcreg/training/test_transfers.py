"""Batches that are moved to the device ahead of the steps, and figures that are copied back."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from pcreg.training.transfers import Outcome, on_device
from tests.kernels.clouds import needs_gpu


@dataclass
class Fake:
    number: int
    device: str = ""

    def to(self, device):
        if self.number == 3:
            raise ValueError("the third cannot be moved")
        return Fake(self.number, device)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_all_come_in_their_order(device):
    batches = [Fake(1), None, Fake(2)]
    assert list(on_device(batches, device)) == [Fake(1, device), None, Fake(2, device)]
    assert list(on_device([], device)) == []
    coming = on_device([Fake(1), Fake(3)], device)
    assert next(coming) == Fake(1, device)
    with pytest.raises(ValueError, match="third"):
        next(coming)


def test_an_outcome_has_the_figures_of_its_step():
    batch = SimpleNamespace(names=["a->b", "c->d"], left_out=["e->f"])
    loss = {"total": torch.tensor(1.5), "forward": torch.tensor(2.0)}
    assert Outcome(7, batch, 0.25, loss, torch.tensor(0.5)).read() == {
        "loss/total": 1.5,
        "loss/forward": 2.0,
        "train/gradient_norm": 0.5,
        "train/learning_rate": 0.25,
        "train/pairs_left_out": 1,
    }
