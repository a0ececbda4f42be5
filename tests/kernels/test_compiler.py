"""Compiling in processes for a GPU that is not there: what Triton's cache then has, and what if they fail.

Each case is a process of its own, as Triton interprets in this one.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="no triton for this platform")

KERNELS = """
import triton
import triton.language as tl

ONE = tl.constexpr(1)


@triton.jit
def increment(x):
    return x + ONE


@triton.jit
def scale(x, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, increment(tl.load(x + at, mask=at < n) * FACTOR), mask=at < n)


@triton.jit
def broken(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK + 1), n)  # no power of two
"""

BEGINNING = """
import logging
import os
import sys

logging.basicConfig(format="%(message)s")
from pcreg.kernels import compiler
"""

IMPORTED = """
import sys

from pcreg.kernels.triton.compile_server import imported_kernels

kernels = list(imported_kernels())
import torch
from triton.language import constexpr

values = [value for module in list(sys.modules.values()) for value in vars(module).values()]
numbers = [value.value for value in values if isinstance(value, constexpr)]
print(type(torch).__module__)
print("torch._C" in sys.modules, len(numbers) > 10, len(kernels) > 40)
print([number for number in numbers if isinstance(number, type)])
"""

NOTED = """
import torch
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import CompiledKernel
from triton.runtime import driver

import some_kernels
from pcreg.kernels.triton.compile_server import Target
from pcreg.kernels.triton.compilation import Compilation
from pcreg.kernels.triton.launch import launch, rehearsal
from pcreg.kernels.triton.loaded import load
from pcreg.kernels.triton.precision import parts

driver.set_active(Target(GPUTarget("cuda", 90, 32)))
driver.active.get_current_stream = lambda device: 0
CompiledKernel.run = None  # no GPU to bring it onto
loaded = {True: 0, False: 0}


def count(*, cache_hit, **_):
    loaded[cache_hit] += 1


knobs.compilation.listener = count
x = torch.zeros(64)
with rehearsal() as noted:
    parts(x)
    for factor in range(1, 10):
        launch(some_kernels.scale, 1, (x, 7), {"FACTOR": factor, "BLOCK": 16}, factor)
"""

COMPILED = (
    "print(Compilation(noted, 4).wait(), 'kernels,', loaded[True], 'found,', loaded[False], 'compiled')\n"
)
NONE_STARTS = "compiler.Compiler = None\n"


@pytest.fixture
def program(tmp_path):
    """Start Python on some code, in a folder with an empty cache."""
    (tmp_path / "some_kernels.py").write_text(KERNELS)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONUNBUFFERED": "1"}
    started = []

    def start(*code: str) -> subprocess.Popen:
        (tmp_path / "script.py").write_text(BEGINNING + "".join(code))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, tmp_path / "script.py"], env=environment, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_process_finds_what_others_compiled(program):
    """In a script without a main guard, whose folder is the one place where its kernels are."""
    process = program("compiler.begin(4)\n", NONE_STARTS, NOTED, COMPILED, COMPILED)
    assert process.communicate(timeout=120) == (
        "10 kernels, 10 found, 0 compiled\n0 kernels, 10 found, 0 compiled\n",
        "",
    )
    process = program(NONE_STARTS, "compiler.begin(4)\n", NOTED, COMPILED)
    assert process.communicate(timeout=120) == ("10 kernels, 10 found, 0 compiled\n", "")


def test_few_kernels_start_nothing(program):
    process = program(NONE_STARTS, NOTED, "noted.popitem()\n", COMPILED)
    assert process.communicate(timeout=120) == ("9 kernels, 0 found, 9 compiled\n", "")


def test_nothing_starts_where_triton_is_interpreted_or_cores_are_few(program):
    interpreted = "from triton import knobs\nknobs.runtime.interpret = True\ncompiler.begin(4)\n"
    few_cores = "knobs.runtime.interpret = False\ncompiler.begin(3)\n"
    assert program(NONE_STARTS, interpreted, few_cores).communicate(timeout=120) == ("", "")


def test_a_kernel_that_does_not_compile_raises_its_error(program):
    broken = "with rehearsal() as more:\n    launch(some_kernels.broken, 1, (x, 7), {'BLOCK': 16}, None)\n"
    process = program(NOTED, broken, "noted |= more\n", COMPILED)
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert "a process could not compile some_kernels.broken: " in errors
    assert "power of 2" in errors.splitlines()[-1]


@pytest.mark.parametrize(
    ("trouble", "warning"),
    [
        ("sys.executable = '/nowhere/python'\n", "no process to compile in"),
        ("compiler.SERVER = 'nothing'\n", "No module named 'nothing'"),
        ("import some_kernels\nsome_kernels.scale.hash = 'other source'\n", "its source has changed"),
    ],
)
def test_without_such_processes_threads_compile(program, trouble, warning):
    out, errors = program(trouble, NOTED, COMPILED).communicate(timeout=120)
    assert out.startswith("10 kernels, ")
    assert warning in errors


def test_a_worker_that_is_killed_is_done_without(program):
    killed = """
import some_kernels

with open(some_kernels.__file__, "a") as file:
    file.write("scale.preload = lambda data: os._exit(1)\\nimport os\\n")
"""
    out, errors = program(killed, NOTED, COMPILED).communicate(timeout=120)
    assert out.startswith("10 kernels, ")
    assert "to go" in errors


LAUNCHED = """
compilation = Compilation(noted, 4)
server = compilation._compiler._process.pid
for key, wanted in noted.items():
    load(key, wanted)
print(compilation.wait(), 'kernels,', loaded[True], 'found,', loaded[False], 'compiled')
"""


def test_a_launch_waits_for_the_process_that_compiles_its_kernel(program):
    out, errors = program(NOTED, LAUNCHED).communicate(timeout=120)
    assert (out, errors) == ("10 kernels, 10 found, 0 compiled\n", "")


SLOW = """
with open(some_kernels.__file__, "a") as file:
    file.write("import time\\nscale.preload = lambda data: time.sleep(600)\\n")
compilation = Compilation(noted, 4)
print(compilation._compiler._process.pid, flush=True)
some_key, some_launch = next(item for item in noted.items() if item[1].kernel is some_kernels.scale)
"""


@pytest.mark.parametrize("ending", ["", "raise SystemExit\n", "os.kill(os.getpid(), 2)\n"])
def test_a_process_ends_without_what_is_still_compiled(program, ending):
    process = program(NOTED, SLOW, ending)
    server = int(process.stdout.readline())
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGINT if "kill" in ending else 0)
    assert errors == "" or "kill" in ending
    assert gone(server)


def test_a_forked_process_waits_for_nobody(program):
    forked = """
child = os.fork()
if child == 0:
    print(load(some_key, some_launch) is not None, flush=True)
    raise SystemExit
print(os.waitpid(child, 0)[1], compilation._compiler.is_waiting)
"""
    process = program(NOTED, SLOW, forked)
    out, errors = process.communicate(timeout=60)
    assert (out.splitlines()[1:], errors) == (["True", "0 True"], "")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, None])
def test_no_process_is_left_behind(program, ending):
    process = program("compiler.begin(4)\nprint(compiler._begun._process.pid)\ninput()\n")
    server = int(process.stdout.readline())
    if ending is None:
        process.communicate("\n", timeout=120)
    else:
        process.send_signal(ending)
    assert gone(server)


def gone(process: int) -> bool:
    """Whether it ends within half a minute."""
    deadline = time.monotonic() + 30
    while Path(f"/proc/{process}").exists() and "Z" not in state_of(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def state_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_a_hash_does_not_depend_on_what_was_hashed_before(program):
    """What a kernel calls is part of its hash; found is the kernel that another process compiled."""
    first = "import some_kernels\nfrom pcreg.kernels.triton.variant import settle, source_length\n"
    hashed = "settle(some_kernels.scale)\nprint(some_kernels.scale.cache_key)\n"
    one, _ = program(first, hashed).communicate(timeout=120)
    other, _ = program(first, "some_kernels.increment.cache_key\n", hashed).communicate(timeout=120)
    length = "assert source_length(some_kernels.scale) > len(some_kernels.scale.src)\n"
    measured, _ = program(first, length, hashed).communicate(timeout=120)
    assert one == other == measured != ""


def test_kernels_are_imported_without_pytorch():
    """In the process that compiles them, and take no number from it: what stands in for it are classes."""
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    found = subprocess.run([sys.executable, "-c", IMPORTED], env=environment, capture_output=True, text=True)
    assert found.stdout.split("\n")[:3] == ["pcreg.kernels.triton.stand_in", "False True True", "[]"], (
        found.stderr
    )
