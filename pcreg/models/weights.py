"""Trained networks as .safetensors files, which carry the architecture of the weights."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pcreg.models import weights_file
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import KEY, Architecture, StoredWeights, read_weights
from pcreg.runtime.device import ONE_THREAD
from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import replacing


def save_weights(path: str | Path, network: ResUNet, half: bool = False) -> None:
    """Write parameters, statistics and architecture of a network, atomically.

    With `half` the parameters are rounded to float16; the statistics keep their dtype.
    """
    from safetensors.torch import save

    parameters = {name for name, _ in network.named_parameters()}
    tensors = {
        name: (tensor.half() if half and name in parameters else tensor).detach().cpu().contiguous()
        for name, tensor in network.state_dict().items()
    }
    metadata = {KEY: json.dumps(dataclasses.asdict(network.architecture))}
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata))  # save_file raises no OSError on a full disk


def load_weights(path: str | Path, required: Mapping[str, Any] | None = None) -> ResUNet:
    """Load the network of a .safetensors file, in evaluation mode, on the CPU.

    `required` holds values that fields of the architecture must have; None allows any value. A required voxel
    size replaces that of the file, as a network has no unit of length. Raises InputError for a file that is
    missing, damaged, or holds the weights of another network.
    """
    network, required = network_of(read_weights(path)), dict(required or {})
    if (voxel := required.pop("voxel", None)) is not None:
        with refusing("model.voxel: {error}", ValueError):
            network.architecture = dataclasses.replace(network.architecture, voxel=voxel)
    for field, found in dataclasses.asdict(network.architecture).items():
        value = required.get(field)
        value = tuple(value) if isinstance(value, list) else value
        if value not in (None, found):
            raise InputError(
                f"model.{field}={value}: the network of {path} has {found}, and its weights fit no other "
                f"value; set model.{field} to that"
            )
    return network


def network_of(stored: StoredWeights) -> ResUNet:
    """Make the network with these weights, in evaluation mode, on the CPU."""
    tensors = {name: torch.from_numpy(array) for name, array in stored.tensors.items()}
    return _fill(uninitialized(stored.architecture), tensors)


def interpolate_weights(first: ResUNet, last: ResUNet, share: float) -> ResUNet:
    """Interpolate networks of one architecture: `share` of the first one's weights, the rest of the last's.

    Interpolated with the initial weights, fine-tuned weights forget less (Wortsman et al., CVPR 2022).
    """
    start, end = first.state_dict(), last.state_dict()
    mixed = {
        name: torch.lerp(tensor, start[name].to(tensor), share) if tensor.is_floating_point() else tensor
        for name, tensor in end.items()
    }
    return _fill(uninitialized(last.architecture), mixed)


def fingerprint(network: nn.Module) -> str:
    """First 16 digits of the SHA-256 over all parameters and statistics of the network."""
    return weights_file.fingerprint(
        {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}
    )


def uninitialized(architecture: Architecture) -> ResUNet:
    """Make a network with arbitrary weights, without drawing random numbers or starting threads."""
    with ONE_THREAD, _WithoutInitialization():
        return ResUNet(architecture)


def _fill(network: ResUNet, tensors: dict[str, torch.Tensor]) -> ResUNet:
    """Load parameters and statistics into a network, without starting a thread; set evaluation mode."""
    with ONE_THREAD:
        network.load_state_dict(tensors)
    return network.eval()


class _WithoutInitialization(TorchFunctionMode):
    """Mode that leaves new weights unfilled; the meta device would import modules for three seconds."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.randn:
            return torch.empty(*args, **kwargs)
        if function in (nn.init.kaiming_uniform_, nn.init.uniform_):
            return kwargs["tensor"]
        return function(*args, **kwargs)
