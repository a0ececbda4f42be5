import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pcreg.features.fcgf import FCGF
from pcreg.models.weights import load_weights, save_weights
from pcreg.runtime.errors import InputError, OutputError
from pcreg.training.checkpoint import load_checkpoint, save_checkpoint
from pcreg.training.losses import HardestContrastive
from pcreg.training.optimisation import one_cycle
from pcreg.training.trainer import Trainer
from pcreg.training.validation import feature_match_recall
from tests.pcreg.tiny import Sheets, batches, network


def trainer(folder, lr=3e-3, epochs=None, **settings):
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr)
    if epochs:
        settings["scheduler"] = one_cycle(optimizer, epochs)
    return Trainer(net, optimizer, folder, loss=HardestContrastive(positives_per_pair=256), **settings)


def validate(net):
    return feature_match_recall(FCGF(net), Sheets(2), n_points=1000, tau=0.05, minimum=0.05)


class Stopped(Exception):
    pass


class Cut:
    """Batches that call a function before they give out the batch of a given epoch and number."""

    def __init__(self, at, before):
        self.inner, self.at, self.before = batches(), at, before

    def __len__(self):
        return len(self.inner)

    def epoch(self, epoch, first=0):
        for number, batch in enumerate(self.inner.epoch(epoch, first), start=first):
            yield self.before(batch) if (epoch, number) == self.at else batch


@dataclass
class Sends:
    """A batch that sends signals during its step."""

    batch: object
    number: int
    times: int = 1

    def to(self, device):
        for _ in range(self.times):
            os.kill(os.getpid(), self.number)
        return self.batch.to(device)


@pytest.mark.parametrize(("stop", "ema"), [((1, 0), 0.0), ((1, 1), 0.5)])
def test_a_resumed_training_ends_bit_equal(tmp_path, stop, ema):
    settings = {"ema": ema, "checkpoint_every": 1, "epochs": 3}
    whole = trainer(tmp_path / "whole", **settings)
    figures = whole.fit(batches(), 3, validate)

    def stopped(_batch):
        raise Stopped

    with pytest.raises(Stopped):
        trainer(tmp_path / "parts", **settings).fit(Cut(stop, stopped), 3, validate)
    resumed = trainer(tmp_path / "parts", **settings)
    assert resumed.resume()
    assert (resumed.state.epoch, resumed.state.batch) == stop
    assert resumed.fit(batches(), 3, validate) == figures
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name
    written = load_weights(tmp_path / "parts" / "last.safetensors").state_dict()
    assert torch.equal(written["final.weight"], whole.output_network.final.weight)
    assert torch.equal(written["final.weight"], whole.network.final.weight) == (ema == 0)


@pytest.fixture
def sigterm():
    """Let SIGTERM raise as in pcreg.runtime.termination, without the timer that ends the process."""
    usual = signal.signal(signal.SIGTERM, lambda *_: exit(143))
    yield
    signal.signal(signal.SIGTERM, usual)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training of two epochs that was not interrupted, and its figures."""
    trained = trainer(tmp_path_factory.mktemp("whole"))
    return trained, trained.fit(batches(), 2, validate)


@pytest.mark.usefixtures("sigterm")
@pytest.mark.parametrize(
    ("when", "number"), [("waiting", signal.SIGINT), ("step", signal.SIGTERM), ("validation", signal.SIGTERM)]
)
def test_a_training_that_is_stopped_keeps_all_steps(tmp_path, whole, when, number):
    def stop(net):
        if when == "validation" and (tmp_path / "last.safetensors").exists():
            os.kill(os.getpid(), number)
        return validate(net)

    def signalled(batch):
        if when == "waiting":
            os.kill(os.getpid(), number)
        return batch if when == "validation" else Sends(batch, number)

    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
        trainer(tmp_path).fit(Cut((1, 1), signalled), 2, stop)
    resumed = trainer(tmp_path)
    assert resumed.resume()
    done = {"waiting": (1, 1), "step": (1, 2), "validation": (1, 2)}[when]
    assert (resumed.state.epoch, resumed.state.batch) == done
    uninterrupted, figures = whole
    assert resumed.fit(batches(), 2, validate) == figures
    for name, tensor in uninterrupted.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name


@pytest.mark.usefixtures("sigterm")
def test_a_training_that_is_stopped_in_its_first_validation_resumes_without_a_warning(tmp_path, recwarn):
    def stop(net):
        if (tmp_path / "last.pt").exists():
            os.kill(os.getpid(), signal.SIGTERM)
        return {"feature_match_recall": 0.0, "inlier_ratio": 0.0}

    with pytest.raises(SystemExit):
        trainer(tmp_path, checkpoint_every=1).fit(batches(), 1, stop)
    resumed = trainer(tmp_path)
    assert resumed.resume()
    assert (resumed.state.epoch, resumed.state.batch) == (0, 2)
    resumed.fit(batches(), 1, lambda net: {"feature_match_recall": 0.0, "inlier_ratio": 0.0})
    assert not [str(each.message) for each in recwarn if "lr_scheduler" in str(each.message)]


def test_a_step_that_is_cut_off_is_not_kept(tmp_path):
    twice = Cut((1, 0), lambda batch: Sends(batch, signal.SIGINT, times=2))  # the first signal waits
    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path).fit(twice, 2, validate, validate_every=2)
    assert EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("loss/total")
    resumed = trainer(tmp_path)
    assert resumed.resume()
    assert (resumed.state.epoch, resumed.state.batch) == (1, 0)
    figures = resumed.fit(batches(), 1, validate)  # no epoch is left, and no weights are written so far
    assert validate(load_weights(tmp_path / "best.safetensors")) == figures


def test_training_learns_and_leaves_usable_weights(tmp_path):
    before = validate(network())
    by_heart = batches(Sheets(2), batch_size=1, rotate=False)
    after = trainer(tmp_path, lr=1e-2).fit(by_heart, 30, validate, validate_every=30)
    assert after["inlier_ratio"] > 2 * before["inlier_ratio"]
    assert validate(load_weights(tmp_path / "best.safetensors")) == after
    assert list((tmp_path / "tensorboard").iterdir())
    assert not list(tmp_path.glob(".*"))


def test_the_best_weights_are_kept_beside_the_last(tmp_path):
    recalls, seen = iter([0.0, 0.5, 0.8, 0.8]), []  # before, and after each epoch

    def given(net):
        seen.append(net.final.weight.clone())
        return {"feature_match_recall": next(recalls), "inlier_ratio": 0.1}

    trainer(tmp_path).fit(batches(), 3, given)
    for name, row in (("best", 2), ("last", 3)):
        assert torch.equal(load_weights(tmp_path / f"{name}.safetensors").final.weight, seen[row])


def test_the_loss_draws_by_seed_epoch_and_batch(tmp_path, monkeypatch):
    drawn, call = [], HardestContrastive.__call__

    def noted(loss, *given):
        drawn.append(given[-1].initial_seed())
        return call(loss, *given)

    monkeypatch.setattr(HardestContrastive, "__call__", noted)
    for seed in (0, 1):
        trainer(tmp_path / str(seed), seed=seed).fit(batches(), 2, validate)
    assert len(set(drawn)) == len(drawn) == 8


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_what_is_not_finite_stops_training_with_the_pairs_name(tmp_path, what):
    sick = trainer(tmp_path)
    if what == "loss":
        with torch.no_grad():
            sick.network.final.bias[0] = float("nan")
    else:
        sick.network.final.bias.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(InputError, match=rf"the {what} is (nan|inf) on \d/source->\d/target"):
        sick.fit(batches(batch_size=1), 1, validate)


def test_a_full_disk_is_named_and_nothing_is_half_written(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))  # raises errors as a full disk does
    try:
        with pytest.raises(OutputError, match=r"last\.pt: cannot be written \(File too large\)"):
            save_checkpoint(tmp_path / "last.pt", value=torch.ones(10_000))
        with pytest.raises(OutputError, match=r"a\.safetensors: cannot be written"):
            save_weights(tmp_path / "a.safetensors", network())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_whole_or_absent_and_refused_if_damaged_or_foreign(tmp_path):
    path = tmp_path / "last.pt"
    save_checkpoint(path, value=torch.ones(3))
    with pytest.raises(AttributeError):
        save_checkpoint(path, value=lambda: None)
    assert torch.equal(load_checkpoint(path)["value"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]
    save_checkpoint(path, value=torch.ones(1000))
    whole = path.read_bytes()
    for damaged in (whole[:1000], whole.replace(np.float32(1).tobytes(), np.float32(2).tobytes(), 1)):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="damaged"):
            load_checkpoint(path)
    for foreign in ({"array": np.float64}, torch.ones(3)):  # a global that is not allowed, and a tensor
        torch.save(foreign, path)
        with pytest.raises(InputError, match="not a checkpoint"):
            load_checkpoint(path)
    save_checkpoint(path, network={})
    with pytest.raises(InputError, match="lacks identity"):
        trainer(tmp_path).resume()
    path.unlink()
    trainer(tmp_path, identity={"batch_size": 2}).fit(batches(), 1, validate)
    with pytest.raises(InputError, match="batch_size is 2 there and 4 here"):
        trainer(tmp_path, identity={"batch_size": 4}).resume()


def test_the_average_is_exponential(tmp_path):
    one = trainer(tmp_path, ema=0.75)
    with torch.no_grad():
        one.averaged.update(one.network)  # the first are taken as they are
        before = one.network.final.bias.clone()
        one.network.final.bias += 1.0
        one.averaged.update(one.network)
    assert torch.allclose(one.output_network.final.bias, before + 0.25)
