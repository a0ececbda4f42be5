"""One reader per kind of point cloud file: path in, rows out, their first three columns x y z.

A reader may raise anything on a damaged file; pcreg.io.cloud turns it into one sentence. No reader believes
a header: what it promises is held against the size of the file before anything is allocated.
"""
