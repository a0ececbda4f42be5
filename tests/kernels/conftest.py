"""Fixtures of the tests of Triton kernels."""

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(scope="module")
def bfloat16_in_the_interpreter() -> Iterator[None]:
    """Make the interpreter multiply bfloat16 values; in Triton 3.7 it multiplies their bit patterns."""
    tl = pytest.importorskip("triton.language", reason="no triton for this platform")
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    InterpreterBuilder, TensorHandle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def widened(handle):
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    multiply_bits = InterpreterBuilder.create_dot
    InterpreterBuilder.create_dot = lambda self, a, b, *rest: multiply_bits(
        self, widened(a), widened(b), *rest
    )
    yield
    InterpreterBuilder.create_dot = multiply_bits


@pytest.fixture
def by_triton(monkeypatch) -> None:
    """Make point_conv take the Triton kernels on any device."""
    monkeypatch.setattr("pcreg.kernels.conv.runs_by_tiles", lambda triplets, dtype: True)
