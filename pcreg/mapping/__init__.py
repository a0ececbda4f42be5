"""Maps of many scans: pairs proposed and registered, a robust pose graph, and parts joined."""
