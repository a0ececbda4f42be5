"""Launches that compile a kernel once, and compiling beforehand, with stand-ins for Triton's kernels."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from tests.kernels.clouds import DEVICE

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton import launch as module
from pcreg.kernels.triton.launch import Compilation, collected_launches, launch

ARGUMENTS = (torch.zeros(1, device=DEVICE),)


class Kernel:
    """Stand-in for a kernel of Triton; counts compilations and keeps the grids of its launches."""

    def __init__(self):
        self.fn = self._run  # a function of this kernel alone
        self.compiled, self.launched = 0, []

    def warmup(self, *arguments, grid, fails=False, **constants):
        time.sleep(0.02)
        if fails:
            raise RuntimeError("cannot be compiled")
        self.compiled += 1
        return SimpleNamespace(run=self._run, function=None, packed_metadata=None)

    def _run(self, grid, *_):
        self.launched.append(grid)


@pytest.fixture(autouse=True)
def streams(monkeypatch):
    """Streams where there is no GPU."""
    active = SimpleNamespace(get_current_stream=lambda device: 0)
    monkeypatch.setattr(module, "driver", SimpleNamespace(active=active))


def test_threads_compile_a_kernel_once_for_its_constants_dtypes_and_specialized_integers():
    kernel = Kernel()
    with ThreadPoolExecutor(4) as pool:
        for n in range(1, 9):
            pool.submit(launch, kernel, n, ARGUMENTS, {"N": n % 2})
    assert kernel.compiled == 2
    assert sorted(kernel.launched) == list(range(1, 9))
    for more in ((None,), (ARGUMENTS[0].double(),), (7,), (8,)):
        launch(kernel, 1, (*ARGUMENTS, *more), {"N": 0})
    assert kernel.compiled == 4
    for M in (1, 16, 32, 33):
        launch(kernel, 1, (*ARGUMENTS, M), {"N": 0}, specialized=(M,))
    assert kernel.compiled == 7


def test_collected_launches_are_compiled_and_not_made():
    kernel = Kernel()
    with collected_launches() as launches:
        for n in (1, 2, 1):
            launch(kernel, 0, ARGUMENTS, {"N": n})
    assert [Compilation(launches, 2).wait() for _ in range(2)] == [2, 0]
    assert kernel.launched == []
    launch(kernel, 3, ARGUMENTS, {"N": 1})
    assert (kernel.compiled, kernel.launched) == (2, [3])


def test_an_error_is_raised_by_each_launch_and_by_wait():
    kernel = Kernel()
    with collected_launches() as launches:
        launch(kernel, 1, ARGUMENTS, {}, fails=True)
    compilation = Compilation(launches, 2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot be compiled"):
            launch(kernel, 1, ARGUMENTS, {}, fails=True)
    with pytest.raises(RuntimeError, match="cannot be compiled"):
        compilation.wait()
    launch(kernel, 5, ARGUMENTS, {})
    assert kernel.launched == [5]
