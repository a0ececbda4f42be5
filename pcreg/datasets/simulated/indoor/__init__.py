"""Simulated rooms seen by a depth camera: fragments (`record`), of two (`record_by_two`), `record_scans`."""

from pcreg.datasets.simulated.indoor.recording import BEND, record, record_by_two, record_scans

__all__ = ["BEND", "record", "record_by_two", "record_scans"]
