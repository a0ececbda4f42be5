"""Procedural rooms seen by a hand-held depth camera, in fragments: `record` is the way in."""

from pcreg.datasets.simulated.indoor.recording import record

__all__ = ["record"]
