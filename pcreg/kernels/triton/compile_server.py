"""The process that compiles for another: see pcreg.kernels.compiler."""

import json
import os
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from select import select
from threading import Thread

from triton import JITFunction, knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver as nvidia
from triton.runtime import driver
from triton.runtime.cache import triton_key

from pcreg.kernels.triton import stand_in
from pcreg.kernels.triton.variant import Variant, settle

PATIENCE = 60  # seconds in which something has to be asked for
NUMBER = struct.Struct("H")
MAX_ERROR = 1500  # characters of a message: a line is written at once, unmixed with others, up to 4096


class Target:
    """In the place of Triton's driver: all that compiling asks a GPU for, and no GPU."""

    def __init__(self, target: GPUTarget) -> None:
        self.get_current_target = lambda: target
        self.get_current_device = lambda: 0


def serve(cores: int, parent: int) -> None:
    """Compile what is asked for by one line on stdin, on as many workers as `cores`.

    For each kernel a line on stdout: its number, and null or why it could not be compiled.
    """
    answers = os.dup(1)
    os.dup2(2, 1)  # what a compiler prints is no answer
    meanwhile = Thread(target=triton_key)  # Triton's checksum of itself takes half a second
    meanwhile.start()
    for kernel in imported_kernels():
        settle(kernel)
    meanwhile.join()  # no thread may run where a process forks
    _in_process(_compile_module)
    line = _request(parent)
    if not line:
        return
    request = json.loads(line)
    knobs.cache.dir = request["cache"]
    driver.set_active(Target(GPUTarget(**request["target"])))
    variants = [Variant(*fields) for fields in request["kernels"]]
    kernels = [getattr(import_module(variant.module), variant.name) for variant in variants]
    for kernel in kernels:  # of another package
        settle(kernel)
    # Workers take numbers from a pipe. They end when there are no more: none can be left behind.
    numbers, begin = os.pipe()
    os.write(begin, b"".join(map(NUMBER.pack, range(len(kernels)))))
    os.close(begin)
    for _ in range(min(cores, len(kernels))):
        _in_process(_work, kernels, variants, numbers, answers)
    with suppress(ChildProcessError):  # none is left
        while True:
            os.wait()


def _in_process(do: Callable[..., None], *arguments: object) -> None:
    """Do it in a process of its own, which ends then."""
    if os.fork() == 0:
        try:
            do(*arguments)
        finally:
            os._exit(0)


def imported_kernels() -> Iterator[JITFunction]:
    """The kernels of all modules, without PyTorch, which takes longer to import than a kernel to compile."""
    stand_in.install()
    package = sys.modules[__package__]
    for module in walk_packages(package.__path__, f"{__package__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, JITFunction):
                yield value


def _compile_module() -> None:
    """Have Triton's module that loads kernels compiled from C, for the parent."""
    with suppress(AssertionError):  # no driver of a GPU is found, which is for the parent to say
        nvidia.CudaUtils()


def _request(parent: int) -> str:
    """The line that the parent writes; nothing if it has ended or takes too long.

    The end of stdin alone would not tell: what the parent forks keeps it open.
    """
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and os.getppid() == parent:
        if select([sys.stdin], [], [], 1)[0]:
            return sys.stdin.readline()
    return ""


def _work(kernels: list, variants: list[Variant], numbers: int, answers: int) -> None:
    while packed := os.read(numbers, NUMBER.size):
        (number,) = NUMBER.unpack(packed)
        try:
            compiled = kernels[number].preload(variants[number].data)
            error = None if compiled.hash == variants[number].hash else "its source has changed"
            if hasattr(nvidia, "make_launcher"):  # Triton 3.6 compiles one from C for each signature
                nvidia.CudaLauncher(compiled.src, compiled.metadata)
        except Exception:  # whatever it is: the parent tells it, and compiles the kernel itself
            error = traceback.format_exc()[-MAX_ERROR:]
        os.write(answers, f"{json.dumps([number, error])}\n".encode())
