"""Architecture of a network, and the arrays in its .safetensors file of weights."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcreg.kernels.pyramid_config import KERNEL_SIZE, KERNELS, PyramidConfig
from pcreg.runtime import cached_property
from pcreg.runtime.errors import InputError, refusing

KEY = "pcreg.architecture"  # in the file's metadata
STATISTICS = ("weight", "bias", "running_mean", "running_var")  # tensors of a batch norm


@dataclass(frozen=True)
class Architecture(PyramidConfig):
    """Settings of a network that decide which weights fit; 8,753,408 parameters by default.

    Raises ValueError for a setting that cannot be used.
    """

    out_channels: int = 32  # length of a descriptor
    encoder: tuple[int, ...] = (32, 64, 128, 256)  # channels of levels 1 to 4 on the way down
    decoder: tuple[int, ...] = (64, 64, 64, 128)  # channels of levels 1 to 4 on the way up

    def __post_init__(self):
        for name in ("encoder", "decoder"):  # configurations give lists, which cannot be hashed
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if {self.n_levels, len(self.encoder), len(self.decoder)} != {4}:
            raise ValueError(f"encoder and decoder need four widths, got {self.encoder} and {self.decoder}")
        for name in ("stem_kernel_size", "out_channels", "encoder", "decoder"):
            value = getattr(self, name)
            numbers = value if isinstance(value, tuple) else (value,)
            if not all(isinstance(number, int) and number > 0 for number in numbers):
                raise ValueError(f"{name} takes whole numbers from 1, got {value}")
        if self.stem_kernel_size % 2 == 0:
            raise ValueError(f"stem_kernel_size must be odd, such as 3, 5 or 7, got {self.stem_kernel_size}")
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel}: choose {' or '.join(KERNELS)}")
        if self.snap and self.kernel != "grid":
            raise ValueError(
                "snap=true is a convolution on voxels, whose cells lie along the axes; use kernel=grid"
            )
        for name in ("voxel", "radius_scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")

    @property
    def layers(self) -> dict[str, tuple[int, int]]:
        """Input and output channels of the convolution of each layer, in the order of computation."""
        e, d = self.encoder, self.decoder
        down = {"1": (1, e[0]), "2": (e[0], e[1]), "3": (e[1], e[2]), "4": (e[2], e[3])}
        up = {"4_tr": (e[3], d[3]), "3_tr": (d[3] + e[2], d[2]), "2_tr": (d[2] + e[1], d[1])}
        return down | up

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all tensors by their names in pcreg.models.resunet.ResUNet."""
        e, d = self.encoder, self.decoder
        shapes: dict[str, tuple[int, ...]] = {
            "conv1_tr.weight": (d[0], d[1] + e[0]),
            "final.weight": (self.out_channels, d[0]),
            "final.bias": (self.out_channels,),
        }
        for layer, (n_in, n_out) in self.layers.items():
            kernel_size = self.stem_kernel_size if layer == "1" else KERNEL_SIZE
            shapes[f"conv{layer}.weight"] = (kernel_size**3, 1, n_in, n_out)
            shapes |= {f"block{layer}.conv{n}.weight": (KERNEL_SIZE**3, 1, n_out, n_out) for n in (1, 2)}
            for norm in (f"norm{layer}", f"block{layer}.norm1", f"block{layer}.norm2"):
                shapes |= {f"{norm}.{each}": (n_out,) for each in STATISTICS}
                shapes[f"{norm}.num_batches_tracked"] = ()
        return shapes


@dataclass(frozen=True)
class StoredWeights:
    """Parameters and statistics of a network, by name, with float16 converted to float32."""

    architecture: Architecture
    tensors: dict[str, NDArray[Any]]

    @cached_property
    def fingerprint(self) -> str:
        """First 16 digits of the SHA-256 over all tensors."""
        return fingerprint(self.tensors)


def path_of(weights: str | Path) -> Path:
    """Return the path; a name such as `fcgf` becomes the path of shipped weights unless a file has it."""
    path = Path(weights)
    shipped = Path(str(files("pcreg.weights"))) / f"{path.stem}.safetensors"
    is_name = str(path.parent) in (".", "weights") and path.suffix in ("", ".safetensors")
    return shipped if is_name and shipped.is_file() and not os.path.isfile(path) else path


def read_weights(path: str | Path) -> StoredWeights:
    """Read a .safetensors file of weights.

    Raises:
        InputError: The file is missing, damaged or of another kind, its tensors do not fit their
            architecture, or a number in them is not finite.
    """
    from safetensors import SafetensorError, safe_open

    path = path_of(path)
    if not os.path.isfile(path):  # Path.is_file raises if the folder may not be searched
        raise InputError(f"{path}: no such file of weights; check the path, or install pcreg again")
    damaged = f"{path}: cannot be read as .safetensors ({{error}}); use weights written by `pcreg train`"
    # safetensors raises the last two for dtypes that NumPy lacks, such as bfloat16.
    errors = SafetensorError, OSError, TypeError, AttributeError
    with refusing(damaged, *errors), safe_open(path, framework="np") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, tensor in tensors.items():
        if tensor.dtype == np.float16:
            tensors[name] = tensor.astype(np.float32)
        if not np.isfinite(tensors[name]).all():
            raise InputError(
                f"{path}: {name} holds a number that is not finite; use weights written by `pcreg train`"
            )
    architecture, wanted = _architecture(path, metadata)
    found = {name: tensor.shape for name, tensor in tensors.items()}
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            raise InputError(
                f"{path}: does not fit the architecture that it names ({name} is "
                f"{found.get(name, 'missing')} and should be {wanted.get(name, 'absent')}); "
                "use weights written by `pcreg train`"
            )
    return StoredWeights(architecture, tensors)


def fingerprint(tensors: Mapping[str, NDArray[Any]]) -> str:
    """First 16 digits of the SHA-256 over the names and numbers of tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor))
    return digest.hexdigest()[:16]


def _architecture(path: Path, metadata: dict[str, str]) -> tuple[Architecture, dict[str, tuple[int, ...]]]:
    """Read the architecture from a file's metadata; also return the shapes of its tensors."""
    if KEY not in metadata:
        raise InputError(
            f"{path}: does not say which network it belongs to; use weights written by `pcreg train`"
        )
    other = f"{path}: was written for another kind of network ({{error}}); use weights of this version"
    with refusing(other, ValueError, TypeError, AttributeError, KeyError):
        architecture = Architecture(**json.loads(metadata[KEY]))
        return architecture, architecture.shapes
