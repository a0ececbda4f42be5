"""Without a GPU the Triton kernels of these tests run in Triton's interpreter, on CPU tensors."""

import os

import pytest
import torch

from kernels.dataflow import Arrangement

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read where a kernel is defined


@pytest.fixture(scope="session", autouse=True)
def bfloat16_in_the_interpreter():
    """Have the interpreter multiply bfloat16 values: as of Triton 3.7 it multiplies their bit patterns."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    def widened(handle: TensorHandle) -> TensorHandle:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    multiply_bits = InterpreterBuilder.create_dot
    InterpreterBuilder.create_dot = lambda self, a, b, *rest: multiply_bits(
        self, widened(a), widened(b), *rest
    )
    yield
    InterpreterBuilder.create_dot = multiply_bits


@pytest.fixture(params=["output-stationary", "weight-stationary"])
def dataflow(request, monkeypatch) -> str:
    """Make point_conv take one of the Triton dataflows, whatever it would have chosen."""

    def arrange(triplets, features, deterministic) -> Arrangement:
        return triplets.tiles if request.param == "output-stationary" else None

    monkeypatch.setattr("kernels.autograd.arrange", arrange)
    return request.param
