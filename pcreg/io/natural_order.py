"""Natural order of file names."""

import re


def natural(name: str) -> list[tuple[int, str]]:
    """Key that sorts scan_2 before scan_10; names that differ in zeros alone have a fixed order."""
    parts = re.split(r"(\d+)", name)
    return [*((int(part), "") if part.isdecimal() else (-1, part) for part in parts), (-1, name)]
