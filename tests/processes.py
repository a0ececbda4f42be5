"""Processes that tests start, in the checkout or in an environment of its wheel."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FOREIGN = ("datasets", "kernels")  # packages of Hugging Face that may be there, too


def python(*words: object, env: Mapping[str, str] = os.environ, timeout: int = 240) -> str:
    """Output of Python with these arguments; a status other than 0 fails the test."""
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    return done.stdout


def started(*words: object, **options: object) -> subprocess.Popen[str]:
    """Start a process of Python with these arguments and a pipe from its output."""
    usual = {"stdout": subprocess.PIPE, "text": True, "cwd": CHECKOUT}
    usual["env"] = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    return subprocess.Popen([sys.executable, *map(str, words)], **usual | options)


def in_core(core, code: str, *words: str, cwd) -> subprocess.CompletedProcess[str]:
    """Run code, before which sys is imported, in a Python that sees only the folder `core`."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.insert(0, sys.argv[1])\n{code}"]
    return subprocess.run([*command, core, *words], cwd=cwd, capture_output=True, text=True)


def run(*command, cwd) -> str:
    """Output of a command, run without this process's PYTHONPATH; failure fails the test."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
