"""The precisions that are measured, and how products and networks take each."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

PRECISIONS = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


@contextmanager
def tf32_if(precision: str) -> Iterator[None]:
    """Products of float32 features in tf32 where that is the precision, and nowhere else."""
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before


def autocast(precision: str, device: torch.device) -> AbstractContextManager:
    """Half precision as one trains with it: float32 weights, cast for each product."""
    dtype = PRECISIONS[precision]
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)
