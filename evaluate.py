"""Measure a descriptor: python evaluate.py data=3dmatch data.root=..., as `pcreg evaluate`."""

import sys

from pcreg.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
