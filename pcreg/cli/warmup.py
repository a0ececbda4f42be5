"""The verb `warmup`: compiling the kernels for a GPU beforehand."""

import time
from pathlib import Path

from pcreg.cli import exit_status
from pcreg.cli.options import parser_of
from pcreg.features.pretrained import WEIGHTS
from pcreg.runtime.device import choose_device
from pcreg.runtime.errors import InputError

DESCRIPTION = """\
Compile the kernels for a GPU beforehand.

Otherwise the first pair on a new machine waits for them. The kernels are kept in ~/.triton/cache, or in the
folder $TRITON_CACHE_DIR, for this type of GPU and these versions of pcreg and Triton; later processes load
them from there. All cores are used. Exit status: 0 done, 2 no such GPU or weights that cannot be used.
"""


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit status."""
    parser = parser_of("warmup", DESCRIPTION)
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N (default: %(default)s)")
    weights = "a .safetensors file of `pcreg train` (default: the shipped one)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=weights)
    options = parser.parse_args(arguments)
    return exit_status.status(lambda: _run(options.device, options.weights))


def _run(device: str, weights: Path | None) -> None:
    if choose_device("auto") == "cpu":
        raise InputError("this machine has no GPU for pcreg; the CPU needs no warmup")
    if choose_device(device) == "cpu":
        raise InputError("device=cpu: nothing is compiled for the CPU; use cuda or cuda:N")
    from pcreg.models.torch_inference import ALL_SIZES, compile_kernels  # PyTorch takes a second to import
    from pcreg.models.weights import load_weights

    start = time.perf_counter()
    path = weights or WEIGHTS
    count = compile_kernels(load_weights(path).architecture, device, ALL_SIZES).wait()
    print(f"{count} kernels for {path.name} are compiled, in {time.perf_counter() - start:.1f} s")
