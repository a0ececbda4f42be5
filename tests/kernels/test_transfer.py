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
