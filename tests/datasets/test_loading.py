import os
import signal
import time
from contextlib import contextmanager, suppress

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
def test_what_is_loaded_is_made_by_one_thread(workers, three_threads):
    assert list(load(Threads(), workers=workers, batch_size=None)) == [1]
    assert torch.get_num_threads() == 3


TRAINING = """
import os, sys, time
from pcreg.datasets.collate import load

class Large:
    def __len__(self):
        return 1000

    def __getitem__(self, number):
        if number < 2:
            os.write(1, b"%d " % number)
        return ["x" * 20_000] * 20

if __name__ == "__main__":
    sys.batches = load(Large(), workers=2, batch_size=None)  # still there when Python ends
    next(sys.batches), next(sys.batches)  # the first of either process
    time.sleep(float(sys.argv[1]))
"""


@contextmanager
def training(folder, seconds):
    """A process that takes a batch of each of two loader processes, and ends some seconds later."""
    script = folder / "training.py"
    script.write_text(TRAINING)
    with started(script, seconds, start_new_session=True) as process:
        try:
            assert sorted(process.stdout.read(4).split()) == ["0", "1"]
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_loader_processes_end_with_the_training(tmp_path):
    with training(tmp_path, 60) as process:
        process.kill()
        process.communicate(timeout=20)  # until no process holds the other end


def test_a_training_ends_though_its_loader_processes_have_batches_left(tmp_path):
    with training(tmp_path, 0) as process:
        assert process.wait(timeout=25) == 0
