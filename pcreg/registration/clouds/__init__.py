"""Clouds on their way into a registration: checked, in a local frame, downsampled and described."""
