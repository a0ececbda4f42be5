"""Register two scans of a simulated room: python demo.py [--out DIR], as `pcreg demo`."""

import sys

from pcreg.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["demo", *sys.argv[1:]]))
