"""Procedural rooms seen by a hand-held depth camera, in fragments: `recording.record` is the way in."""
