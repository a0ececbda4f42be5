"""The command line and a registration without what Windows lacks: fcntl, fork, signals, Triton."""

import sys

import numpy as np
import pytest

from pcreg.cli.main import VERBS
from tests.processes import python

WITHOUT = """
import os, signal, sys

import torch  # uses what it finds on this system

for name in ("fcntl", "grp", "pwd", "termios", "triton"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "getuid", "geteuid", "killpg", "register_at_fork", "setsid"):
    delattr(os, name)
for name in [name for name in dir(os) if name.startswith("sched_")]:
    delattr(os, name)
for name in ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "setitimer"):
    delattr(signal, name)

from pcreg.cli.main import main

for arguments in eval(sys.argv[1]):
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    assert not status, arguments
"""


@pytest.mark.skipif(sys.platform == "win32", reason="is the case there")
def test_help_of_every_verb_a_registration_and_a_batch(room, tmp_path):
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    for path, points in zip(paths, (room.source, room.target), strict=True):
        np.save(path, points[::4])
    options = ["--descriptor", "fpfh", "--voxel", "0.2", "--out"]
    commands = [
        *([verb, "--help"] for verb in VERBS),
        ["--help"],
        ["--version"],
        ["register", *paths, *options, str(tmp_path / "pair"), "--no-picture"],
        ["register", "--batch", str(tmp_path / "*.npy"), *options, str(tmp_path / "batch")],
    ]
    python("-W", "ignore", "-c", WITHOUT, repr(commands))
