"""Clouds for a registration: checked, in a local frame, downsampled, described."""
