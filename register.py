"""Register two point clouds: python register.py SOURCE TARGET [--out DIR].

From a checkout; what is installed has the same as `pcreg register`.
"""

import sys

from pcreg.cli.register import main

if __name__ == "__main__":
    sys.exit(main(program="register.py"))
