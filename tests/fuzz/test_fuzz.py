"""Ten seconds, or so, of what `make fuzz` does for five minutes."""

from tests.fuzz.trials import run


def test_ten_seconds_of_trouble():
    for kind, counts in run(seed=0, seconds=10).items():
        assert counts["refused"], kind
        assert kind == "interruptions" or counts["answered"], kind
