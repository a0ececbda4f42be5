import random

from pcreg.io.cloud import natural


def test_numbers_are_counted_and_the_order_is_fixed():
    names = ["scan", "scan_2", "scan_02", "scan_10", "scan_10b", "scan_\u00b2", "1", "01"]
    ordered = sorted(names, key=natural)
    assert ordered.index("scan_2") < ordered.index("scan_10") < ordered.index("scan_10b")
    for seed in range(5):
        assert sorted(random.Random(seed).sample(names, len(names)), key=natural) == ordered
