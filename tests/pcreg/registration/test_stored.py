"""The files of descriptions that are kept for other processes."""

from dataclasses import replace

import numpy as np

from pcreg.features.fpfh import FPFH
from pcreg.geometry.viewpoint import Viewpoint
from pcreg.registration.clouds.stored import CloudFile, StoredCloud


def test_the_name_says_all_that_a_description_depends_on(tmp_path, monkeypatch):
    file, descriptor, named, learned = CloudFile("a.ply", "m", None, "auto"), *(FPFH(0.1) for _ in range(3))
    named.name, learned.fingerprint = "own", "1a2b"
    cases = [(file, descriptor, None, *way) for way in ((False, False), (True, False), (False, True))]
    for changed in (
        {"path": "b.ply"},
        {"units": "mm"},
        {"columns": 5},
        {"viewpoint": "sensor"},
        {"viewpoint": np.zeros(3)},
        {"state": (1, 0)},
        {"state": (0, 1)},
    ):
        cases.append((replace(file, **changed), descriptor, None, False, False))
    cases += [(file, other, None, False, False) for other in (FPFH(0.2), FPFH(0.1, "cuda"), named, learned)]
    cases += [(file, descriptor, Viewpoint(np.full(3, at), known=False), False, False) for at in (0.0, 1.0)]
    names = {StoredCloud(each, tmp_path, "cpu")._path(*settings) for each, *settings in cases}
    assert len(names) == len(cases)
    same = StoredCloud(replace(file), tmp_path, "cpu")._path(FPFH(0.1), None, False, False)
    assert same in names
    monkeypatch.setattr(StoredCloud, "_describe", lambda *_: object())
    cloud = StoredCloud(file, tmp_path, "cpu")
    kept = {cloud.at(by, at, twice=a, around=b) for each, by, at, a, b in cases if each is file}
    assert len(kept) == sum(each is file for each, *_ in cases)
