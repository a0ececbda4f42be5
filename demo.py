"""Register two scans of a simulated room: python demo.py [--out DIR].

From a checkout; what is installed has the same as `pcreg demo`.
"""

import sys

if __name__ == "__main__":
    try:
        from pcreg.cli.demo import main
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; type: make setup", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(program="demo.py"))
