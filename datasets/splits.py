"""Parts of one sequence that share no scan: a stretch to train on, and the rest, held out to measure."""

from pcreg.runtime.errors import InputError

PARTS = ("all", "train", "held_out")


def split_rows(count: int, part: str, held_out: float) -> range:
    """Which of `count` scans in their order a part has: `held_out`, a fraction, are the last of them.

    Neighbouring scans show one place, so a part is one stretch, not scans drawn at random. Raises
    InputError for another part or fraction, and for a part of fewer than two scans.
    """
    if part not in PARTS:
        raise InputError(f"data.split={part}: unknown; choose one of {', '.join(PARTS)}")
    if not 0 < held_out < 1:
        raise InputError(f"data.held_out={held_out:g}: a fraction of the scans is needed, such as 0.25")
    first = count - round(count * held_out)
    scans = {"all": range(count), "train": range(first), "held_out": range(first, count)}[part]
    if len(scans) < 2:
        raise InputError(
            f"data.split={part}: has {len(scans)} of {count} scans and a pair needs two; "
            f"change data.held_out={held_out:g}, or give more scans"
        )
    return scans
