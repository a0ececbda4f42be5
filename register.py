"""Register two point clouds: python register.py SOURCE TARGET [--out DIR].

From a checkout; what is installed has the same as `pcreg register`.
"""

import sys

if __name__ == "__main__":
    try:
        from pcreg.cli.register import main
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; type: make setup", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(program="register.py"))
