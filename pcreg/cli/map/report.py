"""What `map` prints: the scans, where they belong, and what their poses rest on."""

import sys
from collections import Counter

from tabulate import tabulate

from pcreg.mapping.map import Map


def print_map(found: Map) -> None:
    """A line per scan, and one per map; flushed, since later steps may fail."""
    used = Counter(end for edge in found.edges if edge.used for end in (edge.source, edge.target))
    rows = []
    for row, name in enumerate(found.names):
        number = int(found.number[row])
        x, y, z = found.T_map_scan[row][:3, 3]
        place = [f"{value:.2f}" for value in (x, y, z)] if number else ["", "", ""]
        rows.append([name, number or "-", used[row], *place, found.errors[row] or _belongs(number)])
    print(tabulate(rows, headers=["scan", "map", "pairs", "x", "y", "z", ""], disable_numparse=True))
    print()
    for number in range(1, found.count + 1):
        within = [edge for edge in found.edges if edge.used and found.number[edge.source] == number]
        print(f"map {number}: {len(found.scans(number))} scans, {len(within)} pairs in use")
    registered = [edge for edge in found.edges if edge.registered]
    unused = [edge for edge in registered if not edge.used]
    print(f"{len(found.edges)} pairs tried, {len(registered)} registered, {len(unused)} of them not used")
    for edge in unused:
        print(f"not used: {found.names[edge.source]} to {found.names[edge.target]}: {edge.unused_because}")
    sys.stdout.flush()


def _belongs(number: int) -> str:
    return "" if number else "belongs to no other scan"
