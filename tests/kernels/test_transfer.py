"""Tensors between the CPU and a device."""

import torch

from pcreg.kernels.transfer import Fetched, moved
from tests.kernels.clouds import DEVICE


def test_what_is_fetched_is_what_was_there_when_it_was_asked_for():
    tensor = moved(torch.arange(3), DEVICE)
    fetched = Fetched(tensor + 1)
    tensor += 5
    assert fetched.tolist() == [1, 2, 3]
    assert tensor.tolist() == [5, 6, 7]


def test_reading_waits_until_it_is_there():
    fetched = Fetched(torch.zeros(2))
    fetched._there = Arrival(fetched._tensor)
    assert fetched.tolist() == [3.0, 4.0]


class Arrival:
    """As an event of a GPU whose copy arrives when it is waited for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def synchronize(self):
        self.tensor.copy_(torch.tensor([3.0, 4.0]))
