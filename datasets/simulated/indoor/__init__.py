"""Simulated rooms seen by a depth camera: `record` makes fragments, `record_scans` single images."""

from pcreg.datasets.simulated.indoor.recording import record, record_scans

__all__ = ["record", "record_scans"]
