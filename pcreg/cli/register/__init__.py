"""The verb `register`: two clouds, or the pairs of a list."""

import argparse

from pcreg.cli import exit_status
from pcreg.cli.output import output
from pcreg.cli.register.checks import check
from pcreg.cli.register.parser import parsed


def main(arguments: list[str] | None = None, program: str = "pcreg register") -> int:
    """Run the command line and return its exit status."""
    options = parsed(arguments, program)
    return exit_status.status(lambda: _run(options), with_traceback=options.traceback)


def _run(options: argparse.Namespace) -> int:
    check(options)
    with output(quiet=options.quiet, verbose=options.verbose, json=options.json) as stdout:
        if options.batch:
            from pcreg.cli.register.batch import run
        else:
            from pcreg.cli.register.pair import run
        return 0 if run(options, stdout) else 1
