import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from pcreg.runtime.errors import InputError, OutputError
from pcreg.runtime.parallel import allowed as allowed_cores
from pcreg.runtime.workers import executor_of, map_unordered
from tests.processes import started


def about(base, item):
    """Sum, allowed cores, threads of PyTorch and process number in a worker."""
    import torch

    allowed = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    return base + item, allowed, torch.get_num_threads(), os.getpid()


WITH_LIBRARIES = """
import numpy
import torch  # with an OpenMP of its own
from threadpoolctl import threadpool_info
from pcreg.runtime.workers import executor_of, map_unordered

def threads(_):
    return {library["num_threads"] for library in threadpool_info()}

if __name__ == "__main__":
    with executor_of(1) as worker:
        assert list(map_unordered(worker, threads, (), [0])) == [(0, {1})]
"""


def test_libraries_that_a_program_imports_have_the_cores_of_their_worker_alone(tmp_path):
    """A worker imports these libraries with the program, before it is restricted to its cores."""
    (tmp_path / "script.py").write_text(WITH_LIBRARIES)
    with started(tmp_path / "script.py") as script:
        assert script.wait(timeout=60) == 0


def misbehave(item):
    if item == "refuse":
        raise InputError("this item is refused")
    if item == "work":
        return
    time.sleep(0.5)
    os._exit(3)


def test_a_full_disk_for_temporary_files_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(full))
    with executor_of(1) as worker, pytest.raises(OutputError, match=rf"^{tmp_path}/.* cannot be written"):
        list(map_unordered(worker, misbehave, (), ["work"]))


def test_a_worker_has_one_core_and_one_thread_and_takes_one_work_after_another():
    with executor_of(1) as worker:
        first = list(map_unordered(worker, about, (10,), range(5)))
        second = list(map_unordered(worker, about, (20,), range(2)))
        assert sorted((item, result[0]) for item, result in first) == [(n, 10 + n) for n in range(5)]
        assert sorted((item, result[0]) for item, result in second) == [(0, 20), (1, 21)]
        for _, (_, allowed, threads, _) in first:
            assert len(allowed) == threads == 1
            assert allowed <= set(allowed_cores()) or sys.platform != "linux"
        assert len({result[3] for _, result in first + second} | {os.getpid()}) == 2
        # an error of bad input is raised here
        with pytest.raises(InputError, match="this item is refused"):
            list(map_unordered(worker, misbehave, (), ["refuse"]))


class Own(Exception):
    """Error that cannot be unpickled, because its pickle passes one argument only."""

    def __init__(self, code, words):
        super().__init__(f"{code}: {words}")


def raise_own(item):
    raise Own(item, "no such sensor")


def test_an_exception_that_cannot_be_pickled_is_told():
    with executor_of(1) as worker, pytest.raises(RuntimeError, match=r"^Own: 7: no such sensor$"):
        list(map_unordered(worker, raise_own, (), [7]))


def test_a_worker_that_is_gone_is_explained():
    with pytest.raises(InputError, match=r"ended unexpectedly.*workers=1"), executor_of(1) as worker:
        list(map_unordered(worker, misbehave, (), ["die"]))


WITHOUT_GUARD = """
from pcreg.runtime.workers import *
with executor_of(1) as e: list(map_unordered(e, abs, (), [1]))
"""


def test_a_script_without_the_main_guard_is_explained(tmp_path):
    (tmp_path / "script.py").write_text(WITHOUT_GUARD)
    with started(tmp_path / "script.py", stderr=subprocess.PIPE) as script:
        said = script.communicate(timeout=60)[1].splitlines()[-1]
    assert 'under `if __name__ == "__main__":`, or give workers=0' in said


def test_workers_that_share_a_gpu_share_out_the_cores():
    """The workers' task needs no GPU, as this machine may have none."""
    with executor_of(1, "cuda") as worker:
        ((_, (_, allowed, threads, _)),) = map_unordered(worker, about, (0,), [1])
        assert threads == len(allowed_cores())
        assert allowed == set(allowed_cores()) or sys.platform != "linux"


def asked_to_stop(number, results, done):
    """Send this process a signal after the first result; the items that came are in `done`."""
    for item, _ in results:
        if not done:
            os.kill(os.getpid(), number)
        done.append(item)


def test_what_is_under_way_ends_when_the_process_is_asked_to_stop():
    numbers = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}
    usual = [signal.getsignal(number) for number in numbers]
    with executor_of(1) as worker:
        for number, raised in numbers.items():
            done = []
            with pytest.raises(raised):
                asked_to_stop(number, map_unordered(worker, slowly, (), range(20)), done)
            # in any order: one was at work, and two wait where they cannot be called back
            assert sorted(done) == list(range(len(done)))
            assert 1 < len(done) < 6
            assert [signal.getsignal(each) for each in numbers] == usual
        # workers that are stopped with this process are not out of memory
        with pytest.raises(SystemExit):
            asked_to_stop(signal.SIGTERM, map_unordered(worker, misbehave, (), ["work", "die"]), [])


def slowly(item):
    time.sleep(0.05)


def fail_at(results):
    for _ in results:
        raise OSError("the disk is full")


def test_a_caller_that_fails_does_not_wait_for_all_calls():
    start = time.perf_counter()
    with pytest.raises(OSError, match="disk"), executor_of(1) as worker:
        fail_at(map_unordered(worker, slowly, (), range(400)))
    assert time.perf_counter() - start < 10


def test_no_workers_means_here():
    with executor_of(0) as executor:
        results = list(map_unordered(executor, np.add, (1,), iter([2, 3])))
    assert results == [(2, 3), (3, 4)]
