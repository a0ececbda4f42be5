"""Batches that are brought to the device ahead of the steps."""

from dataclasses import dataclass

import pytest

from pcreg.training.ahead import on_device
from tests.kernels.clouds import ON_GPU


@dataclass
class Fake:
    number: int
    device: str = ""

    def to(self, device):
        if self.number == 3:
            raise ValueError("the third cannot be moved")
        return Fake(self.number, device)


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not ON_GPU, reason="needs a GPU"))]
)
def test_all_come_in_their_order(device):
    batches = [Fake(1), None, Fake(2)]
    assert list(on_device(batches, device)) == [Fake(1, device), None, Fake(2, device)]
    assert list(on_device([], device)) == []
    coming = on_device([Fake(1), Fake(3)], device)
    assert next(coming) == Fake(1, device)
    with pytest.raises(ValueError, match="third"):
        next(coming)
