"""Register two point clouds: python register.py SOURCE TARGET [--out DIR], as `pcreg register`."""

import sys

from pcreg.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["register", *sys.argv[1:]]))
