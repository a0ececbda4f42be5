import os
import signal
import threading
import time

import pytest

from pcreg.runtime.termination import GRACE_SECONDS, STATUS, deferred, termination
from tests.processes import started

BOTH = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]


def send(number):
    os.kill(os.getpid(), number)


def test_sigterm_ends_with_status_143(monkeypatch):
    timers = []
    monkeypatch.setattr(threading, "Timer", lambda *given: timers.append(given) or threading.Thread())
    usual = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped, termination():
        send(signal.SIGTERM)
    assert stopped.value.code == STATUS == 143
    assert signal.getsignal(signal.SIGTERM) == usual
    assert timers == [(GRACE_SECONDS, os._exit, [STATUS])]  # started, it would end this process


@pytest.mark.parametrize(("number", "exception"), BOTH)
def test_a_signal_waits_for_the_end_and_a_second_one_does_not(number, exception):
    usual = signal.getsignal(number)
    done = []
    with pytest.raises(exception), deferred() as deferral:  # noqa: PT012
        assert deferral.came is None
        send(number)
        done.append(deferral.came)
    assert done == [number]
    with pytest.raises(KeyboardInterrupt), deferred():  # noqa: PT012
        send(number)
        send(signal.SIGINT)
        done.append("not reached")
    assert len(done) == 1
    assert signal.getsignal(number) == usual


@pytest.mark.parametrize("block", ["threading.Lock()", "t.deferred()"])
def test_neither_a_thread_that_computes_nor_a_block_that_lasts_keeps_the_process(block):
    program = f"""
import threading, time
import pcreg.runtime.termination as t
t.GRACE_SECONDS = 0.5
with t.termination(), {block}:
    threading.Thread(target=time.sleep, args=(300,)).start()
    print("ready", flush=True)
    time.sleep(300)
"""
    with started("-c", program) as run:
        assert run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=60) == 143


PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
CHILD = """
import time
from pcreg.runtime.termination import end_with_parent

end_with_parent()
print("ready", flush=True)
time.sleep(30)
"""


def test_a_child_ends_with_a_parent_that_is_killed():
    with started("-c", PARENT, CHILD) as parent:
        assert parent.stdout.readline() == "ready\n"
        start = time.monotonic()
        parent.kill()
        assert parent.stdout.read() == ""  # until no process holds the other end
        assert time.monotonic() - start < 15
