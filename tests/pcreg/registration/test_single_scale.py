from dataclasses import fields, replace

import numpy as np
import pytest

from pcreg.features.fpfh import FPFH
from pcreg.geometry.se3 import inverse
from pcreg.registration.clouds.preprocess import describe, downsample
from pcreg.registration.strategy.single_scale import SingleScaleRegistrar
from pcreg.runtime.errors import InputError
from tests.pcreg.registration.test_api import VOXEL, correct

NUMBERS = [field.name for field in fields(SingleScaleRegistrar) if field.name in ("attempts", "iterations")]


@pytest.mark.parametrize("option", NUMBERS)
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_numbers_are_checked(option, value):
    with pytest.raises(InputError, match=option):
        SingleScaleRegistrar(FPFH(VOXEL), **{option: value})


def test_described_once_matched_twice(room):
    scale = SingleScaleRegistrar(FPFH(VOXEL))
    a, b = (describe(downsample(each, VOXEL), scale.descriptor) for each in (room.source, room.target))
    there, back = scale.match(a, b), scale.match(b, a)
    assert there.registered
    assert back.registered
    assert correct(there, room.T_target_source)
    assert correct(replace(back, T_target_source=inverse(back.T_target_source)), room.T_target_source)
    np.testing.assert_allclose(room.source[a.rows], a.points, atol=1e-12)
