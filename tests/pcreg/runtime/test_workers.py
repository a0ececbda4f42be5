import os
import signal
import sys
import time

import numpy as np
import pytest

from pcreg.runtime.errors import InputError
from pcreg.runtime.parallel import allowed as allowed_cores
from pcreg.runtime.workers import Workers


def about(base, item):
    """What a worker is like."""
    import torch

    allowed = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    return base + item, allowed, torch.get_num_threads(), os.getpid()


def misbehave(item):
    if item == "refuse":
        raise InputError("this item is refused")
    if item == "work":
        return
    time.sleep(0.5)
    os._exit(3)


def test_a_worker_has_one_core_and_one_thread_and_takes_one_work_after_another():
    with Workers(1) as workers:
        first = list(workers.each(about, (10,), range(5)))
        second = list(workers.each(about, (20,), range(2)))
        assert sorted((item, result[0]) for item, result in first) == [(n, 10 + n) for n in range(5)]
        assert sorted((item, result[0]) for item, result in second) == [(0, 20), (1, 21)]
        for _, (_, allowed, threads, _) in first:
            assert len(allowed) == threads == 1
            assert allowed <= set(allowed_cores()) or sys.platform != "linux"
        assert len({result[3] for _, result in first + second} | {os.getpid()}) == 2
        # an error of bad input is raised here, a worker that is gone is explained
        with pytest.raises(InputError, match="this item is refused"):
            list(workers.each(misbehave, (), ["refuse"]))
        with pytest.raises(InputError, match=r"ended without a word.*workers=1"):
            list(workers.each(misbehave, (), ["die"]))


def asked_to_stop(number, results, done):
    """Send this process a signal after the first result; the items that came are in `done`."""
    for item, _ in results:
        if not done:
            os.kill(os.getpid(), number)
        done.append(item)


def test_what_is_under_way_ends_when_the_process_is_asked_to_stop():
    numbers = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}
    usual = [signal.getsignal(number) for number in numbers]
    with Workers(1) as workers:
        for number, raised in numbers.items():
            done = []
            with pytest.raises(raised):
                asked_to_stop(number, workers.each(about, (0,), range(10)), done)
            assert sorted(done) == [0, 1]  # in any order
            assert [signal.getsignal(each) for each in numbers] == usual
        # workers that are stopped with this process are not in want of memory
        with pytest.raises(SystemExit):
            asked_to_stop(signal.SIGTERM, workers.each(misbehave, (), ["work", "die"]), [])


def test_no_workers_means_here():
    results = list(Workers(0).each(np.add, (1,), iter([2, 3])))
    assert results == [(2, 3), (3, 4)]
