"""Measure a descriptor on the pairs of a data set: python evaluate.py data=3dmatch data.root=...

From a checkout; what is installed has the same as `pcreg evaluate`.
"""

import sys

from pcreg.cli.evaluate import main

if __name__ == "__main__":
    sys.exit(main(program="evaluate.py"))
