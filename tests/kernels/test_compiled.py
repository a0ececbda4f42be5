"""Compilation of kernels for a GPU, on a machine without one."""

import os

import pytest

from tests.processes import CHECKOUT, python

pytest.importorskip("triton", reason="no triton for this platform")

# Kernels of a registration and of a training, on a GPU of 132 processors, without bringing them onto it.
COMPILE_ALL = """
import torch
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import CompiledKernel
from triton.runtime import driver

from pcreg.kernels import conv
from pcreg.kernels.point_batch import RowGroups
from pcreg.kernels.triplets import Triplets
from pcreg.kernels.triton import batch_norm, blocks, launch, output_stationary, weight_gradient
from pcreg.kernels.triton.launch import Compilation, collected_launches
from pcreg.models.torch_inference import ALL_SIZES, compile_kernels
from pcreg.models.weights_file import Architecture


class Driver:
    get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device: 0)


driver.set_active(Driver())
CompiledKernel.run = None
conv.runs_by_tiles = lambda triplets, dtype: True
blocks.processors = output_stationary.processors = lambda device: 132
with collected_launches() as others:
    rows = torch.zeros(64, 32, requires_grad=True)
    triplets, weight = Triplets.identity(64, rows.device), torch.zeros(1, 1, 32, 32)
    weight_gradient.vvor(rows, rows, triplets, torch.float32)
    vector = torch.zeros(32)
    running = vector, vector, torch.tensor(0), 0.1
    arguments = rows, vector, vector, rows, RowGroups((64,)), 1e-5, running, True
    batch_norm.BatchNorm.apply(*arguments).sum().backward()
    for dtype in (torch.float32, torch.bfloat16):
        conv.point_conv(rows.to(dtype), weight.to(dtype), triplets)
compile_kernels(Architecture(kernel="ppf"), "cpu", ALL_SIZES).wait()
Compilation(others, 2).wait()
print(*(key[0].__name__ for key in launch._loaded))
"""


def test_kernels_compile_for_a_gpu():
    """Other tests run kernels in the interpreter, which accepts code that the compiler rejects.

    Triton keeps what it compiled, by the source of the kernel and the version of the compiler.
    """
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    kept = {"TRITON_CACHE_DIR": str(CHECKOUT / ".pytest_cache" / "triton")}
    names = set(python("-c", COMPILE_ALL, env=environment | kept).split())
    assert {"visit", "_output_stationary", "_nearest", "_search", "_collect", "_step_sums"} <= names
