"""Measure a descriptor on the pairs of a data set: python evaluate.py data=3dmatch data.root=...

From a checkout; what is installed has the same as `pcreg evaluate`.
"""

import sys

if __name__ == "__main__":
    try:
        from pcreg.cli.evaluate import main
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; type: make setup", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(program="evaluate.py"))
