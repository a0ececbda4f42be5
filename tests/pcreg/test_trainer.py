import numpy as np
import pytest
import torch

from pcreg.checkpoint import load_checkpoint, save_checkpoint
from pcreg.errors import InputError
from pcreg.fcgf import FCGF
from pcreg.loss import HardestContrastive
from pcreg.trainer import Trainer
from pcreg.validation import feature_match_recall
from pcreg.weights import load_weights

from .tiny import Sheets, batches, network


def trainer(folder, lr=3e-3, **settings):
    net = network()
    optimizer = torch.optim.AdamW(net.parameters(), lr)
    return Trainer(net, optimizer, folder, loss=HardestContrastive(positives_per_pair=256), **settings)


def validate(net):
    return feature_match_recall(FCGF(net), Sheets(2), n_points=300, tau=0.05)


class Stopped(Exception):
    pass


class StopsAt:
    """Batches that are cut off before a given step, as by a kill."""

    def __init__(self, epoch, batch):
        self.inner, self.at = batches(), (epoch, batch)

    def __len__(self):
        return len(self.inner)

    def epoch(self, epoch, first=0):
        for number, batch in enumerate(self.inner.epoch(epoch, first), start=first):
            if (epoch, number) == self.at:
                raise Stopped
            yield batch


@pytest.mark.parametrize("stop", [(1, 0), (1, 1)], ids=["between epochs", "within an epoch"])
def test_a_resumed_training_ends_bit_equal(tmp_path, stop):
    whole = trainer(tmp_path / "whole", checkpoint_every=1)
    figures = whole.fit(batches(), 3, validate)

    with pytest.raises(Stopped):
        trainer(tmp_path / "parts", checkpoint_every=1).fit(StopsAt(*stop), 3, validate)
    resumed = trainer(tmp_path / "parts", checkpoint_every=1)
    assert resumed.resume()
    assert (resumed.at.epoch, resumed.at.batch) == stop
    assert resumed.fit(batches(), 3, validate) == figures
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name]), name


def test_training_learns_and_leaves_usable_weights(tmp_path):
    before = validate(network())
    by_heart = batches(Sheets(2), batch_size=1, rotate=False)
    after = trainer(tmp_path, lr=1e-2).fit(by_heart, 30, validate, validate_every=30)
    assert after["inlier_ratio"] > 2 * before["inlier_ratio"]
    assert validate(load_weights(tmp_path / "best.safetensors")) == after
    assert list((tmp_path / "tensorboard").iterdir())
    assert not list(tmp_path.glob(".*"))


def test_resuming_nothing_says_so(tmp_path):
    assert not trainer(tmp_path).resume()


def test_a_training_with_other_settings_is_not_continued(tmp_path):
    trainer(tmp_path, identity={"batch_size": 2}).fit(batches(), 1, validate)
    with pytest.raises(InputError, match="batch_size is 2 there and 4 here"):
        trainer(tmp_path, identity={"batch_size": 4}).resume()


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


def test_a_checkpoint_is_whole_or_absent(tmp_path):
    path = tmp_path / "last.pt"
    save_checkpoint(path, value=torch.ones(3))
    with pytest.raises(AttributeError):
        save_checkpoint(path, value=lambda: None)
    assert torch.equal(load_checkpoint(path)["value"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["last.pt"]


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path):
    path = tmp_path / "last.pt"
    with pytest.raises(InputError, match="no such checkpoint"):
        load_checkpoint(path)
    save_checkpoint(path, value=torch.ones(1000))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="damaged"):
        load_checkpoint(path)
    torch.save({"array": np.float64}, path)  # a global that is not allowed
    with pytest.raises(InputError, match="no checkpoint"):
        load_checkpoint(path)


def test_an_average_of_the_weights_is_kept_and_resumed(tmp_path):
    whole = trainer(tmp_path / "whole", ema=0.5, checkpoint_every=1)
    figures = whole.fit(batches(), 3, validate)
    with pytest.raises(Stopped):
        trainer(tmp_path / "parts", ema=0.5, checkpoint_every=1).fit(StopsAt(1, 1), 3, validate)
    resumed = trainer(tmp_path / "parts", ema=0.5, checkpoint_every=1)
    assert resumed.resume()
    assert resumed.fit(batches(), 3, validate) == figures
    written = load_weights(tmp_path / "parts" / "last.safetensors").state_dict()
    for name, tensor in whole.kept.state_dict().items():
        assert torch.equal(tensor, written[name]), name
    assert not torch.equal(written["final.weight"], whole.network.state_dict()["final.weight"])


def test_the_average_is_exponential(tmp_path):
    one = trainer(tmp_path, ema=0.75)
    with torch.no_grad():
        one.averaged.update_parameters(one.network)  # the first are taken as they are
        before = one.network.final.bias.clone()
        one.network.final.bias += 1.0
        one.averaged.update_parameters(one.network)
    assert torch.allclose(one.kept.final.bias, before + 0.25)


@pytest.mark.parametrize("ema", [-0.1, 1.0])
def test_an_average_needs_a_decay(tmp_path, ema):
    with pytest.raises(InputError, match=r"ema=.*: give a decay"):
        trainer(tmp_path, ema=ema)
