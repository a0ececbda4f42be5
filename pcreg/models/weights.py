"""Trained weights as one .safetensors file that says which network they belong to."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from pcreg.models.matcher import MatcherArchitecture
from pcreg.models.resunet import Architecture, ResUNet
from pcreg.runtime.deterministic import ONE_THREAD
from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing

KEY = "pcreg.architecture"  # in the file's metadata


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
    network = _load(Path(path))
    for field, found in dataclasses.asdict(network.architecture).items():
        value = (required or {}).get(field)
        value = tuple(value) if isinstance(value, list) else value
        if value not in (None, found):
            raise InputError(
                f"model.{field}={value}: the network of {path} has {found}, and weights fit no other; "
                f"leave model.{field} as it is there"
            )
    return network


def _load(path: Path) -> ResUNet:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError(f"{path}: no such weights; check the path")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"{path}: is no .safetensors file, or a damaged one; use weights of `pcreg train`"
        ) from error
    architecture = _architecture(path, metadata)
    try:
        network = _filled(architecture, tensors)
    except RuntimeError as error:
        difference = _difference(architecture, tensors)
        raise InputError(
            f"{path}: does not fit the architecture that it names ({difference}); "
            "use weights written by `pcreg train`"
        ) from error
    return network.eval()


def interpolate_weights(first: ResUNet, last: ResUNet, share: float) -> ResUNet:
    """A network with `share` of the weights of the first and the rest of those of the last, of one kind.

    Fine-tuned weights that are taken part of the way back forget less (Wortsman et al., CVPR 2022).
    """
    start, end = first.state_dict(), last.state_dict()
    mixed = {
        name: torch.lerp(tensor, start[name].to(tensor), share) if tensor.is_floating_point() else tensor
        for name, tensor in end.items()
    }
    return _filled(last.architecture, mixed).eval()


def fingerprint(network: nn.Module) -> str:
    """The first 16 digits of the SHA-256 over every parameter and statistic of the network."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy())
    return digest.hexdigest()[:16]


def _architecture(path: Path, metadata: dict[str, str]) -> Architecture:
    if KEY not in metadata:
        raise InputError(
            f"{path}: does not say which network it belongs to; use weights written by `pcreg train`"
        )
    try:
        fields = _with_tuples(json.loads(metadata[KEY]))
        if fields.get("matcher"):
            fields["matcher"] = MatcherArchitecture(**_with_tuples(fields["matcher"]))
        return Architecture(**fields)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: was written for another kind of network ({error}); use weights of this version"
        ) from error


def _with_tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _filled(architecture: Architecture, tensors: dict[str, torch.Tensor]) -> ResUNet:
    """The network with these parameters and statistics; RuntimeError if they are not all of its own.

    No random numbers are drawn for weights that are overwritten, and no thread is started.
    """
    with ONE_THREAD:
        with _Undrawn():
            network = ResUNet(architecture)
        network.load_state_dict(tensors)
    return network


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


def _difference(architecture: Architecture, tensors: dict[str, torch.Tensor]) -> str:
    """The first tensor that does not fit, in words."""
    with _Undrawn():
        network = ResUNet(architecture)
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    name = next(name for name in sorted(wanted | found) if wanted.get(name) != found.get(name))
    return f"{name} is {found.get(name, 'missing')} and should be {wanted.get(name, 'absent')}"
