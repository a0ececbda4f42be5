"""Publish the weights of a training: python publish.py TRAINING NAME

From a checkout; what is installed has the same as `pcreg publish`.
"""

import sys

from pcreg.cli.publish import main

if __name__ == "__main__":
    sys.exit(main(program="publish.py"))
