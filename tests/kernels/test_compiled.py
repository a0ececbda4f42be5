"""What Triton makes of a kernel for a GPU, seen without one: results must leave it sixteen bytes at a time.

A column index that the compiler cannot see through makes it store number by number, which took a
convolution more than twice as long.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="no triton for this platform")

COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels.output_stationary import _output_stationary as kernel

features = {dtype!r}
constants = dict(G={groups}, C=64, M=64, ROWS=128, DEPTH=32, COLUMNS=64, IN_PARTS=False, TRANSPOSED=False)
constants |= dict(PRECISION="ieee", STAGES=4, RELU=False)
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
print(triton.compile(source, GPUTarget("cuda", 90, 32), {{"num_warps": 4}}).asm["ptx"])
"""


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", ["*fp16", "*fp32"])
def test_results_are_stored_sixteen_bytes_at_a_time(dtype, groups):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    result = subprocess.run(
        [sys.executable, "-c", COMPILE.format(dtype=dtype, groups=groups)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stderr
    stores = re.findall(r"st\.global\.(\S+)", result.stdout)
    assert stores
    assert set(stores) == {"v4.b32"}
