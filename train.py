"""Train descriptors: python train.py experiment=kitti data.root=..., as `pcreg train`."""

import sys

from pcreg.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
