"""A Dask cluster on this machine: if a worker is killed, no pair is lost.

One scheduler serves all tests; in the first test it has no workers yet.
"""

import asyncio
import csv
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pcreg.cli.main import main
from pcreg.registration import batch
from pcreg.registration.registrar import Registrar
from pcreg.runtime import parallel
from pcreg.runtime.errors import InputError
from pcreg.runtime.records import Records
from pcreg.runtime.workers import executor_of, map_unordered
from tests import processes
from tests.pcreg.evaluation.toys import untimed
from tests.rooms import stored_room

distributed = pytest.importorskip("distributed", reason="dask is not installed (the cluster extra)")
SECONDS = 180  # of a busy machine; it takes five


@contextmanager
def started(*arguments):
    """Start a process of Dask's command line."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = processes.started("-c", "from dask.__main__ import main; main()", *arguments, **quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def worker(address, number=1):
    """A worker, once the scheduler has `number` of them."""
    with started("worker", address, "--nthreads", 1, "--no-nanny", "--no-dashboard") as process:
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=SECONDS)
        yield process


@contextmanager
def scheduling(file):
    """A scheduler: its process and its address, which it writes into a file."""
    with started("scheduler", "--port", 0, "--no-dashboard", "--scheduler-file", file) as process:
        for _ in range(10 * SECONDS):
            if file.is_file() and file.stat().st_size:
                break
            time.sleep(0.1)
        yield process, json.loads(file.read_text())["address"]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler."""
    with scheduling(tmp_path_factory.mktemp("dask") / "scheduler.json") as (_, address):
        yield address


@pytest.fixture(scope="module")
def survivor(scheduler):
    """A worker that serves all tests."""
    with worker(scheduler) as process:
        yield process


@pytest.fixture
def victim(scheduler, survivor):
    """A second worker, which may be killed."""
    with worker(scheduler, number=2) as process:
        yield process


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """The paths of four scans of a room."""
    folder, room = tmp_path_factory.mktemp("scans"), stored_room(0)
    paths = [str(folder / f"{number}.npy") for number in range(4)]
    for number, path in enumerate(paths):
        np.save(path, (room.source, room.target)[number % 2][number // 2 :: 2])
    return paths


def content(path):
    """The content of a file of results without its seconds."""
    with path.open() as file:
        if path.suffix == ".jsonl":
            return [untimed(json.loads(line)) for line in file]
        return untimed(list(csv.DictReader(file))) if path.suffix == ".csv" else file.read()


def registered(scans, folder, workers):
    pairs = [(later, earlier) for row, later in enumerate(scans) for earlier in scans[:row]]
    batch.run(Registrar(descriptor="fpfh", voxel=0.15), pairs, folder, workers=workers)


def test_a_cluster_that_cannot_be_used_is_refused(scheduler, monkeypatch):
    with pytest.raises(InputError, match="has 0 workers; start them with"), executor_of(scheduler):
        pass
    monkeypatch.setattr("pcreg.runtime.cluster.MAX_SECONDS", 0.2)
    port = (silent := socket.create_server(("127.0.0.1", 0))).getsockname()[1]  # as that of Dask's dashboard
    for address in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1:1", "nonsense://x", "nonsense", ""):
        with pytest.raises(InputError, match="no Dask scheduler answers"), executor_of(address):
            pass
    silent.close()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install .*\[cluster\]'"), executor_of(scheduler):
        pass


def test_workers_with_another_pcreg_are_refused(scheduler, victim, monkeypatch):
    monkeypatch.setattr("pcreg.runtime.cluster.code_fingerprint", Other())
    with pytest.raises(InputError, match="another version of pcreg"), executor_of(scheduler):
        pass


class Other:
    """A code checksum that differs in every process."""

    def __call__(self, _place):
        return str(os.getpid())


def test_a_worker_has_one_core(scheduler, victim):
    with executor_of(scheduler) as executor:
        assert executor.submit(parallel.cores).result() == 1
        assert {each["num_threads"] for each in executor.submit(threadpool_info).result()} == {1}


def test_a_cluster_is_reached_from_a_notebook(scheduler, survivor):
    """In a notebook an asyncio loop runs in the main thread."""

    async def cell():
        with executor_of(scheduler) as executor:
            return list(map_unordered(executor, abs, (), [-1]))

    assert asyncio.run(cell()) == [(-1, 1)]


def test_a_killed_scheduler_is_one_sentence_and_what_is_done_is_kept(scans, tmp_path, capsys, monkeypatch):
    (tmp_path / "pairs.csv").write_text("\n".join(f"{a},{b}" for a, b in combinations(scans, 2)))
    add, options = Records.add, ["--descriptor", "fpfh", "--voxel", "0.15", "--out", str(tmp_path)]
    with scheduling(tmp_path / "scheduler.json") as (process, address), worker(address):

        def kill_after_one(records, record):
            add(records, record)
            process.kill()

        monkeypatch.setattr(Records, "add", kill_after_one)
        command = ["register", "--batch", str(tmp_path / "pairs.csv"), "--cluster", address, *options]
        assert main(command) == 2
    assert "the scheduler is gone" in capsys.readouterr().err.splitlines()[-1]
    assert (tmp_path / "pairs.jsonl").read_text()


def test_a_killed_worker_costs_no_pair(scans, scheduler, victim, tmp_path, monkeypatch):
    add = Records.add

    def kill_after_two(records, record):
        add(records, record)
        if len(records.by_pair) == 2:
            victim.kill()

    with monkeypatch.context() as changed:
        changed.setattr(Records, "add", kill_after_two)
        registered(scans, tmp_path / "there", scheduler)
    assert victim.wait(SECONDS) != 0
    registered(scans, tmp_path / "here", 0)
    there, here = (
        {path.name: content(path) for path in (tmp_path / place).glob("*.*")} for place in ("there", "here")
    )
    assert there == here
    assert here.keys() == {"pairs.jsonl", "table.csv"}
    assert {len(rows) for rows in here.values() if isinstance(rows, list)} == {6}


def test_each_caller_works_in_its_own_folder(scheduler, survivor, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with executor_of(scheduler) as first:
        monkeypatch.chdir("/")
        with executor_of(scheduler):
            monkeypatch.chdir(tmp_path)
            assert list(map_unordered(first, os.path.abspath, (), ["a"])) == [("a", str(tmp_path / "a"))]
        monkeypatch.setattr(os, "getcwd", lambda: "/nowhere/at/all")
        with pytest.raises(InputError, match="/nowhere/at/all: a worker does not see this folder"):
            list(map_unordered(first, os.path.abspath, (), ["a"]))
