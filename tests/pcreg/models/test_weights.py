import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from pcreg.features.fcgf import FCGF
from pcreg.models.weights import KEY, fingerprint, load_weights, save_weights
from pcreg.runtime.errors import InputError
from tests.pcreg.tiny import network


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(path, network(seed=3))
    return path


def test_weights_return_with_their_architecture(saved):
    original, loaded = network(seed=3), load_weights(saved)
    assert loaded.architecture == original.architecture
    assert not loaded.training
    for name, tensor in original.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_half_the_size_is_close(tmp_path, saved):
    path = tmp_path / "half.safetensors"
    save_weights(path, network(seed=3), half=True)
    whole, half = load_weights(saved).state_dict(), load_weights(path).state_dict()
    assert path.stat().st_size < 0.6 * saved.stat().st_size
    for name in whole:
        torch.testing.assert_close(half[name], whole[name], rtol=1e-3, atol=1e-6)
        assert half[name].dtype == whole[name].dtype


def test_an_architecture_may_be_required(saved):
    required = {"voxel": 0.05, "encoder": [4, 4, 8, 8], "snap": None}
    assert load_weights(saved, required).architecture == network().architecture
    with pytest.raises(InputError, match=r"model.voxel=0.3: the network of .* has 0.05, and weights fit"):
        load_weights(saved, {"voxel": 0.3})
    with pytest.raises(InputError, match=r"model.encoder=\(4, 4, 8, 16\): .* has \(4, 4, 8, 8\)"):
        load_weights(saved, {"encoder": [4, 4, 8, 16]})


def test_a_fingerprint_tells_weights_apart(saved):
    assert fingerprint(network(seed=3)) == fingerprint(load_weights(saved)) != fingerprint(network(seed=4))


def refused(path, message):
    with pytest.raises(InputError, match=message) as error:
        load_weights(path)
    assert str(path) in str(error.value)


def test_missing(tmp_path):
    refused(tmp_path / "none.safetensors", "no such weights")


def test_truncated(saved):
    saved.write_bytes(saved.read_bytes()[:500])
    refused(saved, "damaged")


def test_not_weights_at_all(saved):
    saved.write_text("hello")
    refused(saved, "damaged")


@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_a_number_that_is_not_finite(number, saved):
    tensors = load_file(saved)
    tensors["block2.norm1.running_mean"][0] = number
    with safe_open(saved, "pt") as file:
        metadata = file.metadata()
    save_file(tensors, saved, metadata)
    for load in (load_weights, FCGF.load):
        with pytest.raises(InputError, match=r"block2\.norm1\.running_mean holds a number that is"):
            load(saved)
    refused(saved, "not finite")


def test_without_architecture(saved):
    save_file({"a": torch.ones(1)}, saved)
    refused(saved, "does not say which network")


def test_of_another_kind_of_network(saved):
    save_file(load_file(saved), saved, {KEY: json.dumps({"layers": 50})})
    refused(saved, "another kind of network")


def test_of_other_widths(saved):
    metadata = {KEY: json.dumps({"out_channels": 16})}
    save_file(load_file(saved), saved, metadata)
    refused(saved, r"block1\.conv1\.weight is \(27, 1, 4, 4\) and should be \(27, 1, 32, 32\)")
