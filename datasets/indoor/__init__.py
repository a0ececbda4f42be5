"""Procedural rooms seen by a hand-held depth camera, in fragments: `record` is the way in."""

from datasets.indoor.recording import record

__all__ = ["record"]
