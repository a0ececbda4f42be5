import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from pcreg.geometry.se3 import rotation_about, se3, transform
from pcreg.runtime.device import ONE_THREAD
from tests.pcreg.scenes import wavy_sheet

ROOT = Path(__file__).parents[3]

FORKED = """
import multiprocessing
import numpy as np
import torch
import sys
torch.set_num_threads(4)
from pcreg import register

def answer():
    found = register(*sys.argv[1:], voxel=0.1)
    return found.T_target_source.tolist(), found.confidence

def child(results):
    results.put(answer())

if __name__ == "__main__":
    expected = answer()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=child, args=(results,), daemon=True)
    process.start()
    assert results.get(timeout=40) == expected
"""


def test_a_forked_child_registers_what_its_parent_registered(tmp_path):
    source = wavy_sheet(3000)
    np.save(tmp_path / "a.npy", source)
    np.save(tmp_path / "b.npy", transform(se3(rotation_about([0, 0, 1], 20), np.full(3, 0.2)), source))
    done = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "a.npy"), str(tmp_path / "b.npy")],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "4"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_contexts_that_overlap_in_two_threads_leave_each_thread_what_it_had():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:

            def threads(executor, do=None):
                return executor.submit(lambda: (do and do(), torch.get_num_threads())[1]).result()

            assert (threads(first), threads(second)) == (3, 3)
            assert threads(first, ONE_THREAD.__enter__) == threads(second, ONE_THREAD.__enter__) == 1
            assert threads(first, ONE_THREAD.__exit__) == 3
            assert threads(second) == 1
            assert threads(second, ONE_THREAD.__exit__) == 3
    finally:
        torch.set_num_threads(before)
