"""`python -m pcreg` is `pcreg`, also where no script is on the path: torchrun -m pcreg train ..."""

import sys

from pcreg.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
