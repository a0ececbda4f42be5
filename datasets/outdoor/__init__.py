"""Procedural streets, places and halls seen by spinning LiDARs: `record` is the way in."""

from datasets.outdoor.recording import record

__all__ = ["record"]
