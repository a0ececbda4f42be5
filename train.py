"""Train descriptors on pairs of clouds: python train.py experiment=kitti data.root=...

From a checkout; what is installed has the same as `pcreg train`.
"""

import sys

if __name__ == "__main__":
    try:
        from pcreg.cli.train import main
    except ModuleNotFoundError as error:
        print(f"error: {error.name} is not installed; type: make setup", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(program="train.py"))
