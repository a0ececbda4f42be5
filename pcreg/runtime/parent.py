"""Processes that do not outlive the one that started them, however that one ends."""

import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def end_with(parent: int) -> None:
    """Have this process end soon after `parent`, the number of the process that started it.

    On Linux the kernel kills it, whatever it is doing, when the thread that started it ends. Elsewhere, and
    if the parent has ended already, a thread sees it within a second. A pipe from the parent would not do:
    processes that are forked later keep it open.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
