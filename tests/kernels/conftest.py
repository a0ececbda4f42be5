"""Without a GPU the Triton kernels run in Triton's interpreter, on CPU tensors."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read where a kernel is defined
