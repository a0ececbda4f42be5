import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from pcreg.runtime import device, extras
from pcreg.runtime.device import ONE_THREAD
from pcreg.runtime.errors import InputError
from tests.pcreg.scenes import moved_sheet
from tests.processes import python

FORKED = """
import multiprocessing
import sys
import torch
torch.set_num_threads(4)
from pcreg import register

def answer():
    found = register(*sys.argv[1:], voxel=0.1)
    return found.T_target_source.tolist(), found.confidence

if __name__ == "__main__":
    expected = answer()
    with multiprocessing.get_context("fork").Pool(1) as child:
        assert child.apply_async(answer).get(timeout=40) == expected
"""


def test_a_gpu_without_triton_is_not_used(monkeypatch):
    """This is so on Windows; all kernels for GPUs are written in Triton."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device, "find_spec", lambda name: name != "triton" or None)
    assert device.choose_device("auto") == "cpu"
    assert device.choose_device("cpu") == "cpu"
    with pytest.raises(InputError, match="device=cuda: needs Triton"):
        device.choose_device("cuda")
    monkeypatch.setattr(device, "find_spec", lambda name: object())
    assert device.choose_device("auto") == "cuda"
    assert device.choose_device("cuda:0") == "cuda:0"
    for name in ("cuda:", "cuda:00", "cuda:1", "cuda:x", "gpu"):
        with pytest.raises(InputError, match=f"device={name}: not on this machine"):
            device.choose_device(name)


def test_a_missing_system_library_is_named_with_the_package_that_has_it(monkeypatch):
    def failing(_):
        raise OSError("libusb-1.0.so.0: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(extras, "import_module", failing)
    with pytest.raises(InputError, match=r"libusb-1\.0\.so\.0.*install .* libusb-1\.0-0"):
        extras.load_open3d()


def test_a_forked_child_registers_what_its_parent_registered(tmp_path):
    python("-c", FORKED, *moved_sheet(tmp_path), env=os.environ | {"OMP_NUM_THREADS": "4"})


def test_contexts_that_overlap_in_two_threads_leave_each_thread_what_it_had(three_threads):
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:

        def threads(executor, do=None):
            return executor.submit(lambda: (do and do(), torch.get_num_threads())[1]).result()

        assert (threads(first), threads(second)) == (3, 3)
        assert threads(first, ONE_THREAD.__enter__) == threads(second, ONE_THREAD.__enter__) == 1
        assert threads(first, ONE_THREAD.__exit__) == 3
        assert threads(second) == 1
        assert threads(second, ONE_THREAD.__exit__) == 3
