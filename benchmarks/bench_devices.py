"""Whether a GPU gives the verdicts of the CPU, and its own answers again to the last bit.

    python benchmarks/bench_devices.py pairs.csv [--device cuda] [--descriptor fcgf]

Of the pairs that `pcreg register --batch` takes: lines SOURCE,TARGET, or a pattern in quotes. Prints the
pairs whose verdicts differ or whose second answer does, by how much motions and confidences differ at most,
and ends with exit status 1 if there was such a pair.
"""

import sys

import numpy as np
from report import parser, run

from pcreg.io.cloud import read_cloud
from pcreg.registration.registrar import DESCRIPTORS, Registrar
from pcreg.registration.result import Registration
from pcreg.registration.strategy.batch import pairs_of


def main() -> None:
    made = parser(__doc__)
    made.add_argument("pairs", metavar="LIST")
    made.add_argument("--device", default="cuda")
    made.add_argument("--descriptor", default=DESCRIPTORS[0], choices=DESCRIPTORS)
    options = made.parse_args()
    here, there = (Registrar(descriptor=options.descriptor, device=on) for on in ("cpu", options.device))
    pairs, wrong, apart, doubt, registered = pairs_of(options.pairs), 0, 0.0, 0.0, 0
    for files in pairs:
        clouds = [read_cloud(file).points for file in files]
        wanted, found, again = (each.register(*clouds) for each in (here, there, there))
        registered += found.registered
        doubt = max(doubt, abs(found.confidence - wanted.confidence))
        if found.registered and wanted.registered:
            apart = max(apart, float(np.abs(found.T_target_source - wanted.T_target_source).max()))
        for differs, what in (
            (found.registered != wanted.registered, "the verdict is not the CPU's"),
            (_bits(found) != _bits(again), "the second answer is not the first"),
        ):
            if differs:
                wrong += 1
                print(f"{' -> '.join(files)}: {what}", flush=True)
    print(f"{len(pairs)} pairs, {registered} registered, {wrong} differences")
    print(f"at most apart: entries of a motion {apart:.3g}, confidences {doubt:.3g}")
    sys.exit(1 if wrong else 0)


def _bits(found: Registration) -> bytes:
    """All that an answer says in numbers."""
    said = found.T_target_source, found.confidence, found.covariance, found.matches
    return b"".join(np.ascontiguousarray(each).tobytes() for each in said if each is not None)


if __name__ == "__main__":
    run(main)
