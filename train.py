"""Train descriptors on pairs of clouds: python train.py experiment=kitti data.root=...

From a checkout; what is installed has the same as `pcreg train`.
"""

import sys

from pcreg.cli.train import main

if __name__ == "__main__":
    sys.exit(main(program="train.py"))
