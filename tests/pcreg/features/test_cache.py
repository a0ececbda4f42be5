import numpy as np
import pytest

from pcreg.features import cache
from pcreg.features.base import Description
from pcreg.features.cache import FeatureCache, read_described
from pcreg.features.fcgf import FCGF
from pcreg.runtime.errors import InputError
from tests.pcreg.evaluation.toys import Distances
from tests.pcreg.scenes import wavy_sheet
from tests.pcreg.tiny import network


def test_a_cloud_is_described_once_for_what_it_depends_on(tmp_path, monkeypatch):
    points = wavy_sheet(50)
    descriptor = Distances()
    first = FeatureCache(tmp_path, descriptor, {"radius": 1}).file_of(points)
    assert FeatureCache(tmp_path, descriptor, {"radius": 1}).file_of(points.copy()) == first
    assert descriptor.described == 1
    description, seconds = read_described(first)
    np.testing.assert_array_equal(description.points, points)
    np.testing.assert_array_equal(description.features, descriptor.describe(points).features)
    assert seconds >= 0

    moved = points + np.array([0, 0, 1e-9])
    files = {
        first,
        FeatureCache(tmp_path, descriptor, {"radius": 1}).file_of(moved),
        FeatureCache(tmp_path, descriptor, {"radius": 2}).file_of(points),
    }
    monkeypatch.setattr(cache, "code_fingerprint", lambda *_: "changed")
    files.add(FeatureCache(tmp_path, descriptor, {"radius": 1}).file_of(points))
    assert len(files) == 4


def test_a_damaged_file_is_named(tmp_path):
    path = FeatureCache(tmp_path, Distances(), {}).file_of(wavy_sheet(50))
    whole = path.read_bytes()
    entry = whole.index(b"PK\1\2")  # followed by version, flags and kind of compression
    places = (entry + 6, b"\xad"), (entry + 8, b"\1"), (entry + 10, b"\10")
    for damaged in (whole[:100], *(whole[:at] + byte + whole[at + 1 :] for at, byte in places)):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"\.npz: kept features are damaged; delete the file"):
            read_described(path)


@pytest.mark.parametrize("returned", [np.full((50, 4), np.nan), np.zeros((49, 4))])
def test_a_description_of_another_shape_or_without_numbers_is_refused(tmp_path, monkeypatch, returned):
    points = wavy_sheet(50)
    monkeypatch.setattr(Distances, "describe", lambda *_: Description(points, returned))
    with pytest.raises(InputError, match=r"Distances.describe\(\) returned 50 points and features of shape"):
        FeatureCache(tmp_path, Distances(), {}).file_of(points)


def test_features_of_a_network_are_kept_as_it_gives_them(tmp_path):
    descriptor, points = FCGF(network()), wavy_sheet(600)
    kept, _ = read_described(FeatureCache(tmp_path, descriptor, {}).file_of(points))
    np.testing.assert_allclose(kept.features, descriptor.describe(points).features, atol=1e-6)
