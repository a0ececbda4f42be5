"""The pairs of a list: register them, say how many are registered."""

import argparse
import json
from typing import TextIO

from pcreg.cli.register.parser import viewpoint_of
from pcreg.registration import batch
from pcreg.registration.api import load
from pcreg.runtime.lock import locked


def run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Register the pairs of --batch; whether all are registered. `stdout` gets their records with --json."""
    pairs = batch.pairs_of(options.batch)
    learned = load(options.descriptor, options.weights)
    with locked(options.out, "name another folder with --out"):
        records = batch.run(
            pairs,
            options.out,
            descriptor=options.descriptor,
            learned=learned,
            voxel=options.voxel,
            unit=options.units[0],
            viewpoint=viewpoint_of(options),
            columns=options.columns,
            seed=options.seed,
        )
    if options.json:
        for record in records:
            print(json.dumps(record), file=stdout)
    done = sum(record["registered"] for record in records)
    print(f"{done} of {len(records)} pairs registered\nwritten: {options.out / 'table.csv'}")
    return done == len(records)
