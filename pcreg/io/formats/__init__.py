"""One reader per kind of point cloud file: path in, rows out, their first three columns x y z.

A reader may raise anything on a damaged file; pcreg.io.cloud turns it into one sentence. No reader trusts a
header: what it promises is compared with the size of the file before anything is allocated.
"""
