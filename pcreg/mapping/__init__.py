"""Maps of many scans: proposal of pairs, a robust pose graph, joining of parts."""
