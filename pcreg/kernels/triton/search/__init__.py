"""Neighbour search on a GPU: triplets are counted, then filled in, without sorting all of them.

A program visits, for each of its centres, the rows of cells that can hold neighbours: a binary search among
the sorted points of an index, then a short scan. Centres that are the points themselves visit half of the
rows, since (i, j, k) implies (j, i, k'). All searches of a network run together:

    visit       count the points of each bucket (k, i)
    scan        the first place of each bucket: that groups by k, then i
    visit       write the rows j of each bucket, as they are met
    order       sort j within its bucket, and write i beside it

The host waits for the device once, after the scan, for the lengths of the results. Besides the triplets the
search needs memory: at first two int32 per bucket, later one per bucket and one per triplet.
"""
