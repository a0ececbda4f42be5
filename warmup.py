"""Compile the kernels for a GPU beforehand: python warmup.py [--device cuda]

From a checkout; what is installed has the same as `pcreg warmup`.
"""

import sys

from pcreg.cli.warmup import main

if __name__ == "__main__":
    sys.exit(main(program="warmup.py"))
