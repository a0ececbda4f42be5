"""Runs that were stopped or killed continue where they ended, and leave no process behind."""

import signal
import subprocess
import time

from tests.pcreg.evaluation.toys import ONE_DRAW, Distances, Rooms, run, untimed
from tests.processes import started

SLOW_RUN = """
import sys
from pathlib import Path
from tests.pcreg.evaluation import toys as t

if __name__ == "__main__":
    t.run(Path(sys.argv[1]), estimator=t.Slow(0.5), workers=1, seeds=(0,), protocol=t.ONE_DRAW)
"""


def test_a_run_goes_on_where_it_was_killed(tmp_path):
    whole = run(tmp_path / "whole")
    path = tmp_path / "killed" / "records.jsonl"
    path.parent.mkdir()
    lines = (tmp_path / "whole" / "records.jsonl").read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:100])
    descriptor = Distances()
    resumed = run(tmp_path / "killed", descriptor=descriptor)
    assert descriptor.described == 3  # pairs of scene b only
    assert untimed(whole) == untimed(resumed)
    assert len(path.read_text().splitlines()) == 6


def test_an_interruption_keeps_what_was_done_and_leaves_no_process(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW_RUN)
    path = tmp_path / "records.jsonl"
    process = started(script, tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not path.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)  # until no process holds the other end
    done = len(path.read_text().splitlines())
    assert 1 <= done < 6
    resumed = [record["pair"] for record in run(tmp_path, protocol=ONE_DRAW, seeds=(0,))]
    assert resumed == [pair.name for pair in Rooms().pairs]
    assert len(path.read_text().splitlines()) == 6
