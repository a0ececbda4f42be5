"""Compiling kernels in processes: threads wait for Python's lock.

One process imports what kernels need, without PyTorch, and forks a worker for each core. What they
compile reaches this process through Triton's cache on disk, and nothing depends on them: a kernel that is
not there in the end is compiled here, which a warning tells.
"""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock, Thread

SERVER = "pcreg.kernels.triton.compile_server"
# The package without what it offers to users, whose modules take longer to import than those of kernels.
START = """
import sys
from types import ModuleType

sys.path[:] = {places}
sys.modules[{package!r}] = ModuleType({package!r})
sys.modules[{package!r}].__path__ = {path}
from {server} import serve

serve{arguments}
"""
MIN_CORES = 4  # threads keep fewer busy
MIN_KERNELS = 10  # fewer are compiled by threads before such a process has started

log = logging.getLogger(__name__)

_begun: "Compiler | None" = None
_beginning = Lock()


class Compiler:
    """The process; it ends when it has compiled once, when nobody asks it to, and with this process."""

    def __init__(self, cores: int) -> None:
        """Start it, with as many workers as `cores`; OSError if that cannot be."""
        # No -m, which would put the working folder in front: modules are found where they are found here.
        package = sys.modules[__name__.partition(".")[0]]
        code = START.format(
            places=[str(place) for place in sys.path],
            package=package.__name__,
            path=[str(place) for place in package.__path__],
            server=SERVER,
            arguments=(cores, os.getpid()),
        )
        # Its own session: Ctrl-C is for this process, which then stops all of that one's.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._owner, self._is_abandoned = os.getpid(), False

    @property
    def is_waiting(self) -> bool:
        """Whether this process can ask it, and a fork of this process cannot."""
        return self._owner == os.getpid() and self._process.poll() is None

    def compile(self, kernels: Sequence[tuple[str, str, str, str]], **setting: object) -> Iterator[int]:
        """Compile kernels, each a pcreg.kernels.triton.variant.Variant, as they come.

        Yields the number of each as soon as the cache has it; with a warning others are left out. The setting
        is what a worker cannot know by itself: the target, and the folder of the cache.
        """
        request, unanswered = json.dumps({"kernels": kernels, **setting}), len(kernels)
        stdin, stdout = self._process.stdin, self._process.stdout
        try:
            with suppress(BrokenPipeError):  # it has ended, and has said why
                print(request, file=stdin, flush=True)
            for line in stdout:
                number, error = json.loads(line)
                unanswered -= 1
                if error is None:
                    yield number
                else:
                    log.warning("a process could not compile %s.%s: %s", *kernels[number][:2], error)
            if unanswered and not self._is_abandoned:
                log.warning("processes that compile ended with %d kernels to go", unanswered)
        finally:
            self.stop()

    def stop(self) -> None:
        """End it and its workers, whatever they are doing."""
        with suppress(BrokenPipeError), self._process:  # closes the pipes, and waits
            self._kill()

    def abandon(self) -> None:
        """End it while another thread waits for its answers, which then stops it."""
        self._is_abandoned = True
        if self.is_waiting:
            self._kill()

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


def begin(cores: int) -> None:
    """Start one where Triton's cache is empty, as on a new machine: soon there will be much to compile.

    So it starts while this process imports torch and loads weights. Nothing is started where the cache holds
    anything, whatever that is: what is missing there is known later.
    """
    global _begun
    try:
        from triton import knobs
        from triton.runtime.cache import triton_key
    except ImportError:
        return
    if knobs.runtime.interpret:
        return
    # Triton takes a checksum of itself, half a second, before it looks for the first kernel.
    Thread(target=triton_key, daemon=True).start()
    with _beginning:
        is_empty = not os.path.isdir(knobs.cache.dir) or not os.listdir(knobs.cache.dir)
        if _begun is None and cores >= MIN_CORES and is_empty:
            _begun = _started(cores)


def compiler_for(count: int, cores: int) -> Compiler | None:
    """One for so many kernels that the cache lacks: that which was begun, or a new one if they are many."""
    global _begun
    with _beginning:
        begun, _begun = _begun, None
    if begun is not None and begun.is_waiting:
        if count > 0:
            return begun
        begun.stop()
    return _started(cores) if count >= MIN_KERNELS and cores >= MIN_CORES else None


def _started(cores: int) -> Compiler | None:
    try:
        return Compiler(cores)
    except OSError as error:  # this process does the work
        log.warning("no process to compile in: %s", error)
        return None
