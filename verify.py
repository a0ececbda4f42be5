"""Judge a motion between two point clouds: python verify.py SOURCE TARGET MOTION [--out DIR]

From a checkout; what is installed has the same as `pcreg verify`.
"""

import sys

from pcreg.cli.verify import main

if __name__ == "__main__":
    sys.exit(main(program="verify.py"))
