"""Many scans into one map: pairs proposed and registered, a robust pose graph, and joint refinement."""
