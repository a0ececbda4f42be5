"""Properties computed once, and side by side for several objects."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from pcreg.runtime.cached_property import cached_property


class Squared:
    def __init__(self, number):
        self.number, self.calls = number, 0

    @cached_property
    def value(self):
        """The square."""
        self.calls += 1
        return self.number**2


def test_it_is_computed_once():
    four = Squared(2)
    assert (four.value, four.value, four.calls) == (4, 4, 1)


def test_each_object_has_its_own():
    assert [Squared(number).value for number in (2, 3)] == [4, 9]


def test_it_can_be_set_and_forgotten():
    four = Squared(2)
    four.value = 5
    assert four.value == 5
    del four.value
    assert four.value == 4


def test_the_class_says_what_it_is():
    assert Squared.value.__doc__ == "The square."


def test_what_raises_is_tried_again():
    class Failing:
        tries = 0

        @cached_property
        def value(self):
            self.tries += 1
            if self.tries == 1:
                raise ValueError("not yet")
            return self.tries

    failing = Failing()
    with pytest.raises(ValueError, match="not yet"):
        _ = failing.value
    assert failing.value == 2


def test_threads_do_not_wait_for_one_another():
    """Those of two objects are within at the same time, which a lock of the class would not allow."""
    both = Barrier(2, timeout=10)

    class Meeting:
        @cached_property
        def value(self):
            return both.wait()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lambda meeting: meeting.value, (Meeting(), Meeting()))) == [0, 1]
