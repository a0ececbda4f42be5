"""Properties that are computed once per object, and in parallel for several objects."""

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
