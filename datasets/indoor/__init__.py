"""Procedural rooms seen by a hand-held depth camera, fused into fragments: `recording.record` is the way in."""
