"""What Triton makes of a kernel for a GPU, seen without one.

Results must leave it sixteen bytes at a time: a column index that the compiler cannot see through makes
it store number by number, which took a convolution more than twice as long. And as many programs must
fit on a processor as are launched for it: registers for one fewer took half as long again.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="no triton for this platform")

COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from pcreg.kernels.triton.output_stationary import _output_stationary as kernel

features = {dtype!r}
constants = dict(G={groups}, KNOWN_C={known}, KNOWN_M={known}, ROWS=128, DEPTH=32, COLUMNS={columns})
constants |= dict(SUMMED={columns} if {columns} >= 64 else 16, IN_PARTS=False)
constants |= dict(TRANSPOSED=False, PRECISION="ieee", STAGES={stages}, SHARED=False, EPILOGUE=False)
constants |= dict.fromkeys(["mean", "variance", "scale", "shift", "residual"])
types = dict.fromkeys(["features", "weight", "out", "sums"], features)
types |= dict.fromkeys(["j", "source", "shared_size", "tile_offsets"], "*i32")
types |= dict(shared_first="*i64", epsilon="fp32")
names = kernel.arg_names
signature = {{name: "constexpr" if name in constants else types.get(name, "i32") for name in names}}
aligned = [["tt.divisibility", 16]]
source = ASTSource(
    kernel,
    signature,
    {{(names.index(name),): value for name, value in constants.items()}},
    {{(n,): aligned for n, name in enumerate(names) if types.get(name) == features}},
)
print(triton.knobs.nvidia.ptxas.path, file=sys.stderr)
print(triton.compile(source, GPUTarget("cuda", 90, 32), {{"num_warps": 4}}).asm["ptx"])
"""

# All that a network launches where results repeat, on a GPU of 132 processors. Without one the network takes
# some of PyTorch's operators instead, and convolutions are told here which way to take.
COMPILE_ALL = """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from pcreg.kernels import conv, warmup
from pcreg.kernels.triton import blocks, output_stationary
from pcreg.kernels.triton.compile_server import Target
from pcreg.kernels.triton.variant import variants_of
from pcreg.models.resunet import Architecture, ResUNet

driver.set_active(Target(GPUTarget("cuda", 90, 32)))
driver.active.get_current_stream = lambda device: 0
conv.arrange = lambda triplets, dtype, deterministic=False: triplets.tiles
blocks.processors = output_stationary.processors = lambda device: 132
network = ResUNet(Architecture(kernel="ppf")).eval()
with torch.inference_mode():
    needed = warmup.rehearse(network.features, network.architecture.geometry, torch.device("cpu"))
for launch, variant in zip(needed.values(), variants_of(needed.values())):
    assert launch.kernel.preload(variant.data).hash == variant.hash
    print(variant.name)
"""


def test_what_is_rehearsed_compiles_for_a_gpu(tmp_path):
    """The interpreter, by which the other tests run kernels, takes more than the compiler does."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path)}
    names = python(COMPILE_ALL, environment)[0].split()
    assert len(names) > 30
    assert {"visit", "_output_stationary", "_nearest", "_neighborhood", "_step", "_align"} <= {*names}


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("dtype", "known"), [("*fp16", 64), ("*fp32", 64), ("*fp32", 0)])
def test_results_are_stored_sixteen_bytes_at_a_time(dtype, known, groups):
    """Whether it is known how many channels there are, or told at launch."""
    code, _ = compiled(dtype=dtype, groups=groups, columns=64, known=known, stages=4)
    stores = re.findall(r"st\.global\.(\S+)", code)
    assert stores
    assert set(stores) == {"v4.b32"}


@pytest.mark.parametrize(("columns", "stages"), [(32, 4), (64, 7), (128, 7)])
def test_as_many_programs_fit_as_are_launched(columns, stages, tmp_path):
    code, assembler = compiled(dtype="*fp16", groups=1, columns=columns, known=columns, stages=stages)
    (tmp_path / "kernel.ptx").write_text(code)
    command = [assembler, "-arch=sm_90a", "-v", "kernel.ptx", "-o", "kernel.o"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=True)
    registers = int(re.search(r"Used (\d+) registers", result.stderr)[1])
    assert registers * 32 * 4 * (256 // columns) <= 2**16


def compiled(**choices) -> tuple[str, str]:
    """The code of the output-stationary kernel for compute capability 9.0, and the path of its assembler."""
    code, said = python(COMPILE.format(**choices), os.environ)
    return code, said.split()[-1]


def python(script: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """What a script of its own, without the interpreter, prints, and says beside it."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=240,
        env={name: value for name, value in environment.items() if name != "TRITON_INTERPRET"},
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr
