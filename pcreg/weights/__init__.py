"""Trained weights, and the card of each."""
