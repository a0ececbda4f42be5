from types import SimpleNamespace

import pytest
import torch

from pcreg.training.losses import HardestContrastive, contrastive_loss, draw


def test_worked_example():
    f0 = torch.tensor([[1, 0], [0, 1], [0.6, 0.8]], dtype=torch.float64)
    f1 = torch.tensor([[0.8, 0.6], [0.28, 0.96], [-0.6, 0.8]], dtype=torch.float64)
    positives, rows = torch.tensor([[0, 0], [1, 1], [2, 1]]), torch.tensor([1, 2])
    loss = contrastive_loss(f0, f1, positives, positives[:2], rows, rows)
    assert loss["positive"].item() == pytest.approx(0.15)
    assert loss["negative0"].item() == pytest.approx(0.0399999833, abs=1e-10)
    assert loss["negative1"].item() == pytest.approx(1.2480400101, abs=1e-10)
    assert loss["total"].item() == pytest.approx(0.7940199967, abs=1e-10)


def test_nothing_is_nan_when_no_negative_survives():
    f = torch.eye(2, requires_grad=True)
    everything_matches = torch.cartesian_prod(torch.arange(2), torch.arange(2))
    rows = torch.arange(2)
    loss = contrastive_loss(f, f, everything_matches, everything_matches, rows, rows)
    assert loss["negative0"] == loss["negative1"] == 0
    loss["total"].backward()
    assert torch.isfinite(f.grad).all()


def test_sampling_is_seeded_and_bounded():
    generator = torch.Generator().manual_seed(0)
    sides = torch.randn(50, 4, generator=generator), torch.randn(60, 4, generator=generator)
    batch = SimpleNamespace(names=["a"], matches=torch.stack([torch.arange(50)] * 2, 1))

    def total(seed, *sizes):
        return HardestContrastive(*sizes)(*sides, batch, torch.Generator().manual_seed(seed))["total"]

    assert total(1, 10, 20) == total(1, 10, 20) != total(2, 10, 20)
    assert torch.isfinite(total(1))  # fewer than 1024


@pytest.mark.parametrize(("population", "count"), [(5, 9), (30, 10), (41, 10), (100_000, 1024)])
def test_draws_are_different_numbers_below_the_population(population, count):
    drawn = draw(population, count, torch.Generator().manual_seed(1), "cpu")
    assert len(set(drawn.tolist())) == len(drawn) == min(population, count)
    assert 0 <= drawn.min() <= drawn.max() < population


def test_draws_are_uniform():
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([draw(50, 10, generator, "cpu") for _ in range(1000)])
    frequency = torch.bincount(drawn.flatten(), minlength=50) / len(drawn)
    assert (frequency - 10 / 50).abs().max() < 0.06  # nearly five standard deviations
    assert (drawn[:, 0].float().mean() - 24.5).abs() < 2.4  # in no order
