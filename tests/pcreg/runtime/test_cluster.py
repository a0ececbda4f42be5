"""A Dask cluster of this machine: a worker that is killed costs no pair."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from pcreg.registration import batch
from pcreg.registration.registrar import Registrar
from pcreg.runtime.errors import InputError
from pcreg.runtime.workers import executor_of
from tests.rooms import stored_room

distributed = pytest.importorskip("distributed", reason="dask is not installed (the cluster extra)")
SECONDS = 180  # of a busy machine; it takes five


@contextmanager
def started(*arguments):
    """A process of dask's command line."""
    command = [sys.executable, "-c", "from dask.__main__ import main; main()", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def worker(address):
    options = ["--nthreads", 1, "--no-nanny", "--no-dashboard"]
    with started("worker", address, *options) as process:
        yield process


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler without workers."""
    known = tmp_path / "scheduler.json"
    with started("scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", known):
        for _ in range(10 * SECONDS):
            if known.is_file() and known.stat().st_size:
                break
            time.sleep(0.1)
        yield json.loads(known.read_text())["address"]


def wait_for_workers(address, count):
    with distributed.Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=SECONDS)


def without_seconds(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_a_batch_gets_its_whole_table_though_a_worker_is_killed(scheduler, tmp_path, monkeypatch):
    room = stored_room(0)
    paths = []
    for number in range(5):
        paths.append(str(tmp_path / f"{number}.npy"))
        np.save(paths[-1], (room.source, room.target)[number % 2][number::2])
    pairs = [(later, earlier) for row, later in enumerate(paths) for earlier in paths[:row]]
    registrar = Registrar(descriptor="fpfh", voxel=0.1)
    with worker(scheduler) as first, worker(scheduler):
        wait_for_workers(scheduler, 2)
        add = batch.Records.add

        def kill_after_two(records, record):
            add(records, record)
            if len(records.by_pair) == 2:
                first.kill()

        monkeypatch.setattr(batch.Records, "add", kill_after_two)
        there = batch.run(registrar, pairs, tmp_path / "there", workers=scheduler)
        assert first.wait(SECONDS) != 0
    monkeypatch.undo()
    here = batch.run(registrar, pairs, tmp_path / "here", workers=0)
    assert len(there) == len(here) == len(pairs)
    assert without_seconds(tmp_path / "there" / "pairs.jsonl") == without_seconds(
        tmp_path / "here" / "pairs.jsonl"
    )


def test_a_cluster_that_cannot_be_used_is_refused(scheduler, monkeypatch):
    with pytest.raises(InputError, match="has 0 workers; start them with"), executor_of(scheduler):
        pass
    monkeypatch.setattr("pcreg.runtime.cluster.MAX_SECONDS", 0.2)
    with pytest.raises(InputError, match="no Dask scheduler answers"), executor_of("tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="no Dask scheduler answers"), executor_of("nonsense://x"):
        pass
    monkeypatch.setitem(sys.modules, "pcreg.runtime.cluster", None)
    with pytest.raises(InputError, match=r"pip install '.\[cluster\]'"), executor_of(scheduler):
        pass
