"""Point cloud registration with learned descriptors on native points."""

from pathlib import Path

import kernels

# `kernels` is also the name of a popular package; an installed one must not stand in for ours.
if Path(kernels.__file__ or "").resolve().parents[1] != Path(__file__).resolve().parents[1]:
    raise ImportError(
        f"pcreg found another package called kernels, {kernels.__file__}; "
        "run from the checkout's folder, or in the environment that `make setup` makes"
    )

from pcreg.registering import register

__all__ = ["register"]
