import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

FAMILY = """
import os, sys, time
from pcreg.runtime.parent import end_with

parent = os.getpid()
if os.fork() == 0:
    if sys.argv[1] == "orphaned already":
        while os.getppid() == parent:
            time.sleep(0.01)
    end_with(parent)
    print("ready", flush=True)
    time.sleep(30)
elif sys.argv[1] == "killed":
    time.sleep(30)
"""


@pytest.mark.parametrize("ends", ["killed", "orphaned already"])
def test_a_child_ends_with_its_parent(ends):
    command = [sys.executable, "-c", FAMILY, ends]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        start = time.monotonic()
        if ends == "killed":
            assert parent.stdout.readline() == "ready\n"
            parent.kill()
        parent.stdout.read()  # until no process holds the other end
        assert time.monotonic() - start < 10
