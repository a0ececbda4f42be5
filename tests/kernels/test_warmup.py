"""Compiling beforehand, and on several threads: rehearsed here, and compiled of stand-ins."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pcreg.kernels import conv, dataflow, warmup
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import search_at_once
from pcreg.models.resunet import Architecture, ResUNet
from tests.kernels.clouds import DEVICE
from tests.pcreg.scenes import wavy_sheet

pytest.importorskip("triton", reason="no triton for this platform")
launch = pytest.importorskip("pcreg.kernels.triton.launch")
blocks = pytest.importorskip("pcreg.kernels.triton.blocks")
output_stationary = pytest.importorskip("pcreg.kernels.triton.output_stationary")


class Kernel:
    """What launches and compiles as one of Triton's does."""

    def __init__(self):
        self.fn = self._run  # a function of this kernel alone
        self.compiled, self.launched = 0, []

    def __getitem__(self, grid):
        def run(*arguments, **constants):
            compiled = self.warmup(*arguments, grid=grid, **constants)
            self.launched.append(grid[0])
            return compiled

        return run

    def warmup(self, *arguments, grid, **constants):
        time.sleep(0.05)
        self.compiled += 1
        return SimpleNamespace(run=self._run, function=None, packed_metadata=None)

    def _run(self, grid, *_):
        self.launched.append(grid)


@pytest.fixture(autouse=True)
def streams(monkeypatch):
    """Without a GPU Triton names none."""
    active = SimpleNamespace(get_current_stream=lambda device: 0)
    monkeypatch.setattr(launch, "driver", SimpleNamespace(active=active))


def test_threads_compile_a_variant_once():
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with ThreadPoolExecutor(4) as pool:
        for n in range(1, 9):
            pool.submit(launch.launch, kernel, n, arguments, {}, n % 2)
    assert kernel.compiled == 2
    assert sorted(kernel.launched) == list(range(1, 9))


def test_what_was_rehearsed_is_compiled_and_not_launched():
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with launch.rehearsal() as noted:
        for variant in (1, 2, 1):
            launch.launch(kernel, 0, arguments, {}, variant)
    assert (launch.compile_noted(noted, 2), launch.compile_noted(noted, 2)) == (2, 0)
    assert kernel.launched == []
    launch.launch(kernel, 3, arguments, {}, 1)
    assert (kernel.compiled, kernel.launched) == (2, [3])


@pytest.mark.parametrize("kernel", ["ppf", "grid"])
@pytest.mark.parametrize("processors", [1, 99])
@torch.inference_mode()
def test_a_network_launches_what_was_rehearsed(kernel, processors, monkeypatch):
    """Whether buckets are occupied or not, and programs share a tile or not."""

    def arrange(triplets, dtype, deterministic=False):  # as on a GPU
        occupied = triplets.n_cells * triplets.n_out <= dataflow.MAX_ROWS_PER_TRIPLET[dtype] * len(triplets)
        return triplets.tiles if occupied else None

    compiled = []
    monkeypatch.setattr(conv, "arrange", arrange)
    monkeypatch.setattr(blocks, "processors", lambda device: processors)
    monkeypatch.setattr(output_stationary, "processors", lambda device: processors)
    monkeypatch.setattr(launch, "compile_noted", lambda noted, cores: compiled.append(noted))
    output_stationary._plan.cache_clear()
    architecture = Architecture(kernel=kernel, encoder=(16, 16, 32, 80), decoder=(16, 16, 16, 32))
    network = ResUNet(architecture).to(DEVICE).eval()
    device = next(network.parameters()).device
    warmup.warm_up(network.features, architecture.geometry, device, 1)
    batch = PointBatch.from_clouds([wavy_sheet(1000)]).to(DEVICE)
    pyramids = [network.pyramid(batch, voxel) for voxel in (1e-4, 0.1)]
    with launch.rehearsal() as needed:
        for pyramid in pyramids:
            network.features(pyramid)
        search_at_once(PointBatch.from_clouds([np.empty((0, 3))]).to(DEVICE), architecture.geometry)
    output_stationary._plan.cache_clear()
    kernels = {noted.kernel.fn.__name__ for noted in needed.values()}
    assert kernels >= {"_output_stationary", "_weight_stationary", "_reduce_parts", "visit"}
    assert needed.keys() <= compiled[0].keys()
