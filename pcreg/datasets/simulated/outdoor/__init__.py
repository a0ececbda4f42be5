"""Procedural streets, places and halls seen by a spinning LiDAR (`record`) or any two (`record_by_two`)."""

from pcreg.datasets.simulated.outdoor.recording import record, record_by_two

__all__ = ["record", "record_by_two"]
