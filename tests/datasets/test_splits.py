import pytest

from pcreg.datasets.folder import split_rows
from pcreg.runtime.errors import InputError


@pytest.mark.parametrize(("count", "held_out"), [(4, 0.5), (10, 0.25), (101, 0.3)])
def test_parts_are_stretches_that_share_no_scan_and_leave_none_out(count, held_out):
    train, held = (split_rows(count, part, held_out) for part in ("train", "held_out"))
    assert [*train, *held] == list(split_rows(count, "all", held_out)) == list(range(count))
    assert len(held) == pytest.approx(held_out * count, abs=0.5)


@pytest.mark.parametrize(
    ("part", "held_out", "complaint"),
    [
        ("test", 0.25, "data.split=test: unknown; choose one of all, train, held_out"),
        ("train", 1.0, "data.held_out=1: a fraction"),
        ("all", -0.5, "data.held_out=-0.5: a fraction"),
        ("held_out", 0.1, "data.split=held_out: has 1 of 10 scans"),
        ("train", 0.9, "data.split=train: has 1 of 10 scans"),
    ],
)
def test_what_is_no_part_is_refused(part, held_out, complaint):
    with pytest.raises(InputError, match=complaint):
        split_rows(10, part, held_out)
