"""How much of one scan another scan sees: the measure of pcreg, by which pairs are proposed."""

from pcreg.overlap import measured_overlap

__all__ = ["measured_overlap"]
