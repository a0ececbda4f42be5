"""Procedural streets, places and halls seen by spinning LiDARs, one (`record`) or two (`record_by_two`)."""

from pcreg.datasets.simulated.outdoor.recording import record, record_by_two

__all__ = ["record", "record_by_two"]
