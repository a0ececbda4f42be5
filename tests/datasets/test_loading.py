import os
import signal
import time

import pytest
import torch

from pcreg.datasets.collate import load, unwrap_loader_errors
from pcreg.runtime.errors import InputError
from tests.processes import started


class Refuses:
    def __len__(self):
        return 1

    def __getitem__(self, _):
        raise InputError("a.ply: holds no points; give another")


class Dies(Refuses):
    def __getitem__(self, _):
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_loader_refuses_is_one_sentence():
    with pytest.raises(InputError) as refused, unwrap_loader_errors():
        list(load(Refuses(), workers=1))
    assert str(refused.value) == "a.ply: holds no points; give another"


def test_that_a_loader_died_is_one_sentence_for_who_waits_for_it():
    batches = load(Dies(), workers=1)
    time.sleep(0.5)  # it is dead by now, and nothing is raised here
    with (
        pytest.raises(InputError, match=r"^a process that makes batches ended .*workers=0"),
        unwrap_loader_errors(),
    ):
        next(batches)


class Threads(Refuses):
    def __getitem__(self, _):
        return torch.get_num_threads()


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_loaded_is_made_by_one_thread(workers):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert list(load(Threads(), workers=workers, batch_size=None)) == [1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


ORPHANS = """
import os, sys, time
from pcreg.datasets.collate import load

class Slow:
    def __len__(self):
        return 1000

    def __getitem__(self, number):
        if number < 2:
            os.write(1, b"%d " % number)
        time.sleep(0.01)
        return 0

if __name__ == "__main__":
    batches = load(Slow(), workers=2, batch_size=None)
    next(batches)
    time.sleep(60)
"""


def test_loader_processes_end_with_the_training(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    with started(script, start_new_session=True) as training:
        try:
            assert sorted(training.stdout.read(4).split()) == ["0", "1"]
            training.kill()
            training.wait()
            training.communicate(timeout=20)  # until no process holds the other end
        finally:
            os.killpg(training.pid, signal.SIGKILL)


HELD = """
import sys
from pcreg.datasets.collate import load

class Large:
    def __len__(self):
        return 1000

    def __getitem__(self, number):
        return ["x" * 20_000] * 20

if __name__ == "__main__":
    batches = load(Large(), workers=2, batch_size=None)
    next(batches)
    sys.batches = batches  # still there when Python ends
    print("end", flush=True)
"""


def test_a_training_ends_though_its_loader_processes_have_batches_left(tmp_path):
    script = tmp_path / "held.py"
    script.write_text(HELD)
    with started(script, start_new_session=True) as training:
        try:
            assert training.stdout.readline() == "end\n"
            assert training.wait(timeout=25) == 0
        finally:
            if training.poll() is None:
                os.killpg(training.pid, signal.SIGKILL)
