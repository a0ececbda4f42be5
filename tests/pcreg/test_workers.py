import os
import sys

import numpy as np
import pytest

from pcreg.errors import InputError
from pcreg.workers import Workers, cores


def about(base, item):
    """What a worker is like."""
    import torch

    allowed = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    return base + item, allowed, torch.get_num_threads(), os.getpid()


def misbehave(item):
    if item == "refuse":
        raise InputError("this item is refused")
    os._exit(3)


def test_a_worker_has_one_core_and_one_thread_and_takes_one_work_after_another():
    with Workers(1) as workers:
        first = list(workers.each(about, (10,), range(5)))
        second = list(workers.each(about, (20,), range(2)))
        assert sorted((item, result[0]) for item, result in first) == [(n, 10 + n) for n in range(5)]
        assert sorted((item, result[0]) for item, result in second) == [(0, 20), (1, 21)]
        for _, (_, allowed, threads, _) in first:
            assert len(allowed) == threads == 1
            assert allowed <= set(cores()) or sys.platform != "linux"
        assert len({result[3] for _, result in first + second} | {os.getpid()}) == 2
        # an error of bad input is raised here, a worker that is gone is explained
        with pytest.raises(InputError, match="this item is refused"):
            list(workers.each(misbehave, (), ["refuse"]))
        with pytest.raises(InputError, match=r"ended without a word.*workers=1"):
            list(workers.each(misbehave, (), ["die"]))


def test_no_workers_means_here():
    results = list(Workers(0).each(np.add, (1,), iter([2, 3])))
    assert results == [(2, 3), (3, 4)]
