"""Kernels compiled for a GPU without one.

Results must leave a kernel sixteen bytes at a time: otherwise a convolution took more than twice as long. As
many programs must fit on a processor as are launched for it.
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
constants = dict(FIXED_C={fixed}, FIXED_M={fixed}, ROWS=128, DEPTH=32, COLUMNS={columns})
constants |= dict(SUMMED={columns} if {columns} >= 64 else 16, IN_PARTS=False)
constants |= dict(STAGES={stages}, SHARED=False, EPILOGUE=False)
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

# Kernels of a registration and of a training, on a GPU of 132 processors, without bringing them onto it.
COMPILE_ALL = """
import torch
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import CompiledKernel
from triton.runtime import driver

from pcreg.kernels import conv, warmup
from pcreg.kernels.point_batch import RowGroups, RunningStatistics
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton import batch_norm, blocks, launch, output_stationary, weight_gradient
from pcreg.kernels.triton.launch import Compilation, collected_launches
from pcreg.models.architecture import Architecture
from pcreg.models.resunet import ResUNet


class Driver:
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device: 0)


driver.set_active(Driver())
CompiledKernel.run = None
conv.arrange = lambda triplets, dtype: triplets.tiles
blocks.processors = output_stationary.processors = lambda device: 132
with collected_launches() as others:
    rows = torch.zeros(64, 32, requires_grad=True)
    triplets, weight = Triplets.identity(64, rows.device), torch.zeros(1, 1, 32, 32)
    weight_gradient.vvor(rows, rows, triplets, torch.float32)
    vector = torch.zeros(32)
    running = RunningStatistics(vector, vector, torch.tensor(0), 0.1)
    batch_norm.batch_norm(rows, RowGroups((64,)), vector, vector, 1e-5, running, rows, True).sum().backward()
    for dtype in (torch.float32, torch.bfloat16):
        conv.point_conv(rows.to(dtype), weight.to(dtype), triplets)
architecture = Architecture(kernel="ppf")
make, device = (lambda: ResUNet(architecture)), torch.device("cpu")
warmup.compile_ahead(make, architecture.geometry, device, 2, warmup.ALL_SIZES).wait()
Compilation(others, 2).wait()
print(*(key[0].__name__ for key in launch._loaded))
"""


def test_kernels_compile_for_a_gpu(tmp_path):
    """The interpreter, by which other tests run kernels, takes more than the compiler does."""
    names = python(COMPILE_ALL, os.environ | {"TRITON_CACHE_DIR": str(tmp_path)})[0].split()
    assert {"visit", "_output_stationary", "_nearest", "_search", "_collect", "_step_sums"} <= {*names}


@pytest.mark.parametrize(("dtype", "fixed"), [("*fp16", 64), ("*fp32", 64), ("*fp32", 0)])
def test_results_are_stored_sixteen_bytes_at_a_time(dtype, fixed):
    code, _ = compiled(dtype=dtype, columns=64, fixed=fixed, stages=4)
    stores = re.findall(r"st\.global\.(\S+)", code)
    assert stores
    assert set(stores) == {"v4.b32"}


@pytest.mark.parametrize(("columns", "stages"), [(32, 4), (64, 7), (128, 7)])
def test_as_many_programs_fit_as_are_launched(columns, stages, tmp_path):
    code, assembler = compiled(dtype="*fp16", columns=columns, fixed=columns, stages=stages)
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
