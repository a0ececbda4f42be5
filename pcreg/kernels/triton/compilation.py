"""Compiling what a rehearsal noted, side by side, while this process goes on.

Processes do it where there is much to do. Threads of this process load the kernels, and compile what no other
process has. They are no executor's: Python would not end before all that was handed to one is done.
"""

import atexit
from collections.abc import Hashable, Iterable
from queue import SimpleQueue
from threading import Event, Thread

from triton import knobs
from triton.runtime import driver

from pcreg.kernels.compiler import MIN_CORES, compiler_for
from pcreg.kernels.triton.launch import Rehearsal
from pcreg.kernels.triton.loaded import Launch, awaited, current, load, loaded
from pcreg.kernels.triton.variant import Variant, variants_of

# That compile what processes do not: a kernel holds Python's lock for a tenth of its time, and beyond these
# they wait for it. On an H200's host with 16 cores 5 took 14 s for 43 kernels, 8 took 11.5, 10 took 10.1.
MAX_THREADS = 10


class Compilation:
    """Kernels that are being compiled. A launch waits for its own alone, and `wait` for all of them.

    With the process ends what is not done.
    """

    def __init__(self, noted: Rehearsal, cores: int) -> None:
        """Begin with what is not loaded yet, in the order in which it was noted, on so many cores."""
        self._wanted = {key: launch for key, launch in noted.items() if key not in loaded}
        self._keys, self._errors, self._is_ended = list(self._wanted), [], False
        self._ready: SimpleQueue[Hashable | None] = SimpleQueue()  # to be loaded; None: that is all
        missing = _missing(self._wanted, cores)
        self._compiler = compiler_for(len(missing), cores)
        answers: Iterable[int] = ()
        if self._compiler is None:
            missing = {}  # threads do it
        elif missing:
            with current(noted[next(iter(missing))].device):
                target = vars(driver.active.get_current_target())
            answers = self._compiler.compile(list(missing.values()), target=target, cache=knobs.cache.dir)
        awaited.update((key, Event()) for key in missing)
        for key in self._keys:
            if key not in missing:
                self._ready.put(key)
        self._threads: list[Thread] = []
        if self._keys:
            atexit.register(self._end)
            loaders = min(len(self._keys), cores, MAX_THREADS)
            self._begin(self._await, answers, list(missing), loaders)
            for _ in range(loaders):
                self._begin(self._load)

    def wait(self) -> int:
        """Wait for all: how many kernels were not loaded before. Raises the first error of a compilation."""
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]
        return sum(key in loaded for key in self._keys)

    def _begin(self, do, *arguments: object) -> None:
        self._threads.append(Thread(target=do, args=arguments, daemon=True))
        self._threads[-1].start()

    def _await(self, answers: Iterable[int], missing: list[Hashable], loaders: int) -> None:
        """Report each kernel that is in Triton's cache, and at the end those that will not come."""
        left = dict.fromkeys(missing)
        try:
            for number in answers:
                del left[missing[number]]
                self._tell(missing[number])
        finally:
            for key in left:
                self._tell(key)
            for _ in range(loaders):
                self._ready.put(None)

    def _tell(self, key: Hashable) -> None:
        awaited.pop(key).set()
        self._ready.put(key)

    def _load(self) -> None:
        while (key := self._ready.get()) is not None and not self._is_ended:
            try:
                load(key, self._wanted.pop(key))
            except Exception as error:  # for who waits; a launch meets it by itself
                self._errors.append(error)

    def _end(self) -> None:
        """Before Python ends: a thread that it stops within a compiler ends the process with an error."""
        self._is_ended = True
        if self._compiler is not None:
            self._compiler.abandon()
        for thread in self._threads:
            thread.join()


def _missing(wanted: dict[Hashable, Launch], cores: int) -> dict[Hashable, Variant]:
    """What Triton's cache lacks and nobody compiles yet, if it is worth the processes."""
    keys = [key for key in wanted if key not in awaited]
    if not keys or cores < MIN_CORES or knobs.runtime.interpret:
        return {}
    with current(wanted[keys[0]].device):
        found = zip(keys, variants_of(wanted[key] for key in keys), strict=True)
        return {key: variant for key, variant in found if variant and not variant.is_stored}
