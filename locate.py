"""Find scans in a map: python locate.py SCAN [SCAN ...] MAP [--out DIR]

From a checkout; what is installed has the same as `pcreg locate`.
"""

import sys

from pcreg.cli.locate import main

if __name__ == "__main__":
    sys.exit(main(program="locate.py"))
