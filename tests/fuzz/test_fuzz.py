"""A few trials of each kind; `make fuzz` makes them for five minutes."""

from tests.fuzz.trials import run


def test_a_few_trials_of_trouble():
    for kind, counts in run(seed=0, seconds=0).items():
        assert counts["refused"], kind
        assert kind == "interruptions" or counts["answered"], kind
