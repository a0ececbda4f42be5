"""Point cloud registration with learned descriptors on native points."""

from pcreg.registration.api import register

__all__ = ["register"]
