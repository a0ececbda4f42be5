"""Properties computed once, and side by side for several objects."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from pcreg.runtime import cached_property


def test_it_is_computed_once_for_each_object():
    class Squared:
        def __init__(self, number):
            self.number, self.calls = number, 0

        @cached_property
        def value(self):
            """The square."""
            self.calls += 1
            return self.number**2

    two, three = Squared(2), Squared(3)
    assert [two.value, two.value, three.value, two.calls] == [4, 4, 9, 1]
    del two.value
    assert [two.value, two.calls, Squared.value.__doc__] == [4, 2, "The square."]


def test_threads_do_not_wait_for_one_another():
    """Those of two objects are within at the same time, which a lock of the class would not allow."""
    both = Barrier(2, timeout=10)

    class Meeting:
        @cached_property
        def value(self):
            return both.wait()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lambda meeting: meeting.value, (Meeting(), Meeting()))) == [0, 1]
