"""Trained networks as .safetensors files that say which architecture the weights belong to."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pcreg.models import weights_file
from pcreg.models.architecture import Architecture
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import KEY, StoredWeights, read_weights
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing


def save_weights(path: str | Path, network: ResUNet, half: bool = False) -> None:
    """Write the network's parameters and statistics with its architecture, atomically.

    With `half`, parameters are rounded to float16, in half of the space; statistics stay as they are.
    """
    from safetensors.torch import save_file

    parameters = {name for name, _ in network.named_parameters()}
    tensors = {
        name: (tensor.half() if half and name in parameters else tensor).detach().cpu().contiguous()
        for name, tensor in network.state_dict().items()
    }
    metadata = {KEY: json.dumps(dataclasses.asdict(network.architecture))}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata)


def load_weights(path: str | Path, required: Mapping[str, Any] | None = None) -> ResUNet:
    """The network of a .safetensors file, in evaluation mode, on the CPU.

    `required` names fields that its architecture has to have; what it leaves out, or has as None, may be
    anything. Raises InputError for a file that is missing, damaged, or holds another network's weights.
    """
    network = network_of(read_weights(path))
    for field, found in dataclasses.asdict(network.architecture).items():
        value = (required or {}).get(field)
        value = tuple(value) if isinstance(value, list) else value
        if value not in (None, found):
            raise InputError(
                f"model.{field}={value}: the network of {path} has {found}, and weights fit no other; "
                f"leave model.{field} as it is there"
            )
    return network


def network_of(stored: StoredWeights) -> ResUNet:
    """The network, in evaluation mode, on the CPU; InputError if it is of another architecture."""
    network = undrawn(stored.architecture)
    stored.check({name: tuple(tensor.shape) for name, tensor in network.state_dict().items()})
    return _fill(network, {name: torch.from_numpy(array) for name, array in stored.tensors.items()})


def interpolate_weights(first: ResUNet, last: ResUNet, share: float) -> ResUNet:
    """A network with `share` of the weights of the first and the rest of those of the last, of one kind.

    Fine-tuned weights that are taken part of the way back forget less (Wortsman et al., CVPR 2022).
    """
    start, end = first.state_dict(), last.state_dict()
    mixed = {
        name: torch.lerp(tensor, start[name].to(tensor), share) if tensor.is_floating_point() else tensor
        for name, tensor in end.items()
    }
    return _fill(undrawn(last.architecture), mixed)


def fingerprint(network: nn.Module) -> str:
    """The first 16 digits of the SHA-256 over every parameter and statistic of the network."""
    return weights_file.fingerprint(
        {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}
    )


def undrawn(architecture: Architecture) -> ResUNet:
    """A network whose weights are to be overwritten; draws no random numbers and starts no thread."""
    with ONE_THREAD, _Undrawn():
        return ResUNet(architecture)


def _fill(network: ResUNet, tensors: dict[str, torch.Tensor]) -> ResUNet:
    """The network with all of these parameters and statistics, in evaluation mode; no thread is started."""
    with ONE_THREAD:
        network.load_state_dict(tensors)
    return network.eval()


class _Undrawn(TorchFunctionMode):
    """Leaves new tensors as they come where they would be filled with random numbers.

    The meta device does so, too, but to compute a shape on it PyTorch imports modules for three seconds.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.randn:
            return torch.empty(*args, **kwargs)
        if function in (nn.init.kaiming_uniform_, nn.init.uniform_):
            return kwargs["tensor"]
        return function(*args, **kwargs)
