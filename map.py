"""Put many scans together: python map.py 'scans/*.ply' [--out DIR]

From a checkout; what is installed has the same as `pcreg map`.
"""

import sys

from pcreg.cli.map import main

if __name__ == "__main__":
    sys.exit(main(program="map.py"))
