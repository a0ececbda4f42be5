"""Compiling beforehand, and on several threads: rehearsed here, and compiled of stand-ins."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from queue import Queue
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
loaded = pytest.importorskip("pcreg.kernels.triton.loaded")
compilation = pytest.importorskip("pcreg.kernels.triton.compilation")
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

    def warmup(self, *arguments, grid, fails=False, **constants):
        time.sleep(0.05)
        if fails:
            raise RuntimeError("cannot be compiled")
        self.compiled += 1
        return SimpleNamespace(run=self._run, function=None, packed_metadata=None)

    def _run(self, grid, *_):
        self.launched.append(grid)


@pytest.fixture(autouse=True)
def streams(monkeypatch):
    """Without a GPU Triton names none."""
    active = SimpleNamespace(get_current_stream=lambda device: 0)
    monkeypatch.setattr(loaded, "driver", SimpleNamespace(active=active))


def test_threads_compile_a_variant_once():
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with ThreadPoolExecutor(4) as pool:
        for n in range(1, 9):
            pool.submit(launch.launch, kernel, n, arguments, {}, n % 2)
    assert kernel.compiled == 2
    assert sorted(kernel.launched) == list(range(1, 9))


class Imported:
    """A kernel that is compiled, and what launches it where Python shares one module among all."""

    function, packed_metadata, module = None, None, SimpleNamespace()

    def __init__(self, own):
        self.own, self.taken = own, None

    @property
    def run(self):
        if self.taken is None:
            self.module.run = self.own
            time.sleep(0.01)  # another thread goes on
            self.taken = self.module.run
        return self.taken


def test_threads_import_what_launches_kernels_one_at_a_time():
    arguments, kernels = (torch.zeros(1, device=DEVICE),), [Kernel() for _ in range(6)]
    for kernel in kernels:
        kernel.warmup = lambda *_, own=kernel._run, **__: Imported(own)
    with ThreadPoolExecutor(6) as pool:
        for n, kernel in enumerate(kernels):
            pool.submit(launch.launch, kernel, n + 1, arguments, {}, None)
    assert [kernel.launched for kernel in kernels] == [[n + 1] for n in range(6)]


def test_what_was_rehearsed_is_compiled_and_not_launched():
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with launch.rehearsal() as noted:
        for variant in (1, 2, 1):
            launch.launch(kernel, 0, arguments, {}, variant)
    assert [compilation.Compilation(noted, 2).wait() for _ in range(2)] == [2, 0]
    assert kernel.launched == []
    launch.launch(kernel, 3, arguments, {}, 1)
    assert (kernel.compiled, kernel.launched) == (2, [3])


class Processes:
    """Compilers that say that a kernel is there when they are told."""

    def __init__(self, monkeypatch):
        self.answers = Queue()
        active = SimpleNamespace(get_current_target=lambda: SimpleNamespace())
        monkeypatch.setattr(compilation, "driver", SimpleNamespace(active=active))
        monkeypatch.setattr(compilation, "_missing", lambda wanted, cores: dict.fromkeys(wanted))
        monkeypatch.setattr(compilation, "compiler_for", lambda count, cores: self)

    def compile(self, variants, **setting):
        return iter(self.answers.get, None)

    def abandon(self):
        self.answers.put(None)


@pytest.fixture
def processes(monkeypatch):
    made = Processes(monkeypatch)
    yield made
    made.abandon()


def test_a_launch_waits_for_its_kernel_alone(processes):
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with launch.rehearsal() as noted:
        for variant in range(3):
            launch.launch(kernel, 1, arguments, {}, variant)
    compiling = compilation.Compilation(noted, 2)
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(launch.launch, kernel, 7 + n, arguments, {}, n) for n in (0, 1))
        launch.launch(kernel, 3, arguments, {}, "another")
        assert (kernel.compiled, kernel.launched) == (1, [3])
        processes.answers.put(1)
        second.result(timeout=10)
        assert (kernel.compiled, kernel.launched, first.done()) == (2, [3, 8], False)
        processes.answers.put(0)
        first.result(timeout=10)
    assert (kernel.compiled, kernel.launched) == (3, [3, 8, 7])
    processes.answers.put(None)  # without an answer for the last
    assert (compiling.wait(), kernel.compiled) == (3, 4)


@pytest.mark.parametrize("answers", [[0, None], [None]])
def test_an_error_is_raised_by_each_launch_and_by_who_waits(processes, answers):
    """Whether a process had compiled the kernel or not."""
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with launch.rehearsal() as noted:
        launch.launch(kernel, 1, arguments, {}, None, fails=True)
    compiling = compilation.Compilation(noted, 2)
    for answer in answers:
        processes.answers.put(answer)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot be compiled"):
            launch.launch(kernel, 1, arguments, {}, None, fails=True)
    with pytest.raises(RuntimeError, match="cannot be compiled"):
        compiling.wait()
    launch.launch(kernel, 5, arguments, {}, "another")
    assert kernel.launched == [5]


def test_two_that_compile_the_same_do_it_once(processes, monkeypatch):
    kernel, arguments = Kernel(), (torch.zeros(1, device=DEVICE),)
    with launch.rehearsal() as noted:
        launch.launch(kernel, 1, arguments, {}, None)
    one = compilation.Compilation(noted, 2)
    monkeypatch.undo()
    other = compilation.Compilation(noted, 99)
    processes.answers.put(0)
    processes.answers.put(None)
    assert (one.wait(), other.wait(), kernel.compiled) == (1, 1, 1)


# Points of the levels where scans of rooms, and of LiDARs, are described at three scales.
CLOUDS = [
    *[(8_911, 2_236, 701, 200), (15_820, 4_894, 1_569, 487)],
    *[(29_344, 5_976, 1_483, 364), (36_936, 13_355, 5_279, 1_839)],
]


@pytest.mark.parametrize("sizes", CLOUDS)
@torch.inference_mode()
def test_what_most_clouds_take_is_asked_for_first(sizes, monkeypatch):
    network = ResUNet(Architecture(kernel="ppf")).to(DEVICE).eval()
    asked = list(asked_for(network, 132, monkeypatch, repeats=True))
    geometry, device = network.architecture.geometry, next(network.parameters()).device
    with launch.rehearsal() as needed:
        network.features(warmup._pyramid(sizes, True, geometry, device))
    last = max(map(asked.index, needed))
    convolutions = [key for key in asked if key[0].__name__ == "_output_stationary"]
    assert asked[0][0].__name__ == "_count"
    assert sum(asked.index(key) > last for key in convolutions) >= 1


@pytest.mark.parametrize("kernel", ["ppf", "grid"])
@pytest.mark.parametrize("processors", [1, 99])
@torch.inference_mode()
def test_a_network_launches_what_was_rehearsed(kernel, processors, monkeypatch):
    """Whether buckets are occupied or not, and programs share a tile or not."""
    architecture = Architecture(kernel=kernel, encoder=(16, 16, 32, 80), decoder=(16, 16, 16, 32))
    network = ResUNet(architecture).to(DEVICE).eval()
    compiled = asked_for(network, processors, monkeypatch)
    batch = PointBatch.from_clouds([wavy_sheet(1000)]).to(DEVICE)
    pyramids = [network.pyramid(batch, voxel) for voxel in (1e-4, 0.1)]
    with launch.rehearsal() as needed:
        for pyramid in pyramids:
            network.features(pyramid)
        several = PointBatch.from_clouds([np.empty((0, 3))] * 2)
        search_at_once(several.to(DEVICE), architecture.geometry)
    kernels = {noted.kernel.fn.__name__ for noted in needed.values()}
    assert kernels >= {"_output_stationary", "_weight_stationary", "_reduce_parts", "visit"}
    assert needed.keys() <= compiled.keys()


def asked_for(network, processors, monkeypatch, repeats=False):
    """What is compiled for a network, in this order, and from now on convolutions are as on a GPU.

    Without `repeats` they are as where results need not repeat.
    """

    def arrange(triplets, dtype, deterministic=False):
        occupied = triplets.n_cells * triplets.n_out <= dataflow.MAX_ROWS_PER_TRIPLET[dtype] * len(triplets)
        return triplets.tiles if occupied or (repeats and deterministic) else None

    monkeypatch.setattr(conv, "arrange", arrange)
    monkeypatch.setattr(blocks, "processors", lambda device: processors)
    monkeypatch.setattr(output_stationary, "processors", lambda device: processors)
    # Plans are made anew, and are no longer kept when the number of processors is what it was.
    monkeypatch.setattr(output_stationary, "_plan", cache(output_stationary._plan.__wrapped__))
    device = next(network.parameters()).device
    return warmup.rehearse(network.features, network.architecture.geometry, device)
