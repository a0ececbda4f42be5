"""Rooms: fragments by a depth camera (`record`), by two (`record_by_two`), single images (`record_scans`)."""

from pcreg.datasets.simulated.indoor.recording import BEND, record, record_by_two, record_scans

__all__ = ["BEND", "record", "record_by_two", "record_scans"]
