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
    assert load_weights(saved, {"voxel": 0.3}).architecture.voxel == 0.3  # a network has no unit of length
    with pytest.raises(InputError, match=r"model\.voxel: "):
        load_weights(saved, {"voxel": 0.0})
    with pytest.raises(InputError, match=r"model.encoder=\(4, 4, 8, 16\): .* has \(4, 4, 8, 8\)"):
        load_weights(saved, {"encoder": [4, 4, 8, 16]})


def test_a_fingerprint_tells_weights_apart(saved):
    assert fingerprint(network(seed=3)) == fingerprint(load_weights(saved)) != fingerprint(network(seed=4))


@pytest.mark.parametrize("number", [torch.nan, -torch.inf])
def test_a_number_that_is_not_finite(number, saved):
    tensors = load_file(saved)
    tensors["block2.norm1.running_mean"][0] = number
    with safe_open(saved, "pt") as file:
        metadata = file.metadata()
    save_file(tensors, saved, metadata)
    for load in (load_weights, FCGF.load):
        with pytest.raises(InputError, match=r"block2\.norm1\.running_mean holds a number that is"):
            load(saved)


def described_as(**architecture):
    """A change to a file of weights, which gives it another architecture."""
    return lambda path: save_file(load_file(path), path, {KEY: json.dumps(architecture)})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "no such file of weights"),
        (lambda path: path.write_bytes(path.read_bytes()[:500]), "cannot be read"),
        (lambda path: path.write_text("hello"), "cannot be read"),
        (lambda path: save_file({"a": torch.ones(1).bfloat16()}, path), "cannot be read .*bfloat16"),
        (lambda path: save_file({"a": torch.ones(1)}, path), "does not say which network"),
        (described_as(layers=50), "another kind of network"),
        (described_as(encoder=["a"] * 4), r"another kind of network \(encoder takes whole numbers from 1"),
        (described_as(out_channels=8.0), "out_channels takes whole numbers from 1, got 8.0"),
        (described_as(out_channels=16), r"conv1\.weight is \(27, 1, 4, 4\) and should be \(27, 1, 32, 32\)"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(saved, damage, message):
    damage(saved)
    for load in (load_weights, FCGF.load):
        with pytest.raises(InputError, match=message) as error:
            load(saved)
        assert str(saved) in str(error.value)
