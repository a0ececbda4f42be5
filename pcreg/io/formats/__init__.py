"""Readers of point cloud files: each takes a path and returns rows that begin with x y z.

A reader may raise any exception on a damaged file; pcreg.io.cloud turns the exception into an InputError. No
reader trusts a header: the sizes in it are compared with that of the file before memory is allocated.
"""
