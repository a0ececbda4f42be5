"""The pairs of a list: register them, say how many are registered."""

import argparse
import json
from typing import TextIO

from pcreg.cli.register.parser import prior_of, registrar_of, viewpoint_of
from pcreg.registration.strategy import batch
from pcreg.runtime.files import locked


def run(options: argparse.Namespace, stdout: TextIO) -> bool:
    """Register the pairs of --batch; whether all are registered. `stdout` gets their records with --json."""
    pairs, registrar = batch.pairs_of(options.batch), registrar_of(options)
    with locked(options.out, "name another folder with --out"):
        records = batch.run(
            registrar,
            pairs,
            options.out,
            unit=options.units[0],
            viewpoint=viewpoint_of(options),
            columns=options.columns,
            seed=options.seed,
            prior=prior_of(options),
            workers=options.cluster,
        )
    if options.json:
        for record in records:
            print(json.dumps(record), file=stdout)
    done = sum(record["registered"] for record in records)
    print(f"{done} of {len(records)} pairs registered\nwritten: {options.out / 'table.csv'}")
    return done == len(records)
