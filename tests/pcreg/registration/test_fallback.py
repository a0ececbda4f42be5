"""What another scale and the mirror image say of an answer."""

from dataclasses import replace

import pytest

from pcreg.features.fpfh import FPFH
from pcreg.registration import diagnostics
from pcreg.registration.api import register_points
from pcreg.registration.confidence import MIN_CONFIDENCE
from pcreg.registration.fallback import register_with_fallback
from pcreg.registration.registrar import Registrar
from tests.pcreg.registration.test_api import VOXEL, correct


def test_a_second_scale_is_tried_and_kept_only_if_the_first_confirms_it(room):
    """The first draws so few samples that it finds nothing, but its matches can be asked."""
    registrars = [Registrar(FPFH(0.06), iterations=1), Registrar(FPFH(0.1))]
    assert not registrars[0].register(room.source, room.target).registered
    found = register_points(room.source, room.target, registrars)
    assert found.registered
    assert correct(found, room.T_target_source)
    assert "agree too" in found.reason


@pytest.mark.parametrize(("mirrored", "registered"), [(0.1, True), (1.0, False)])
def test_the_fallback_accepts_no_motion_that_fits_worse_than_the_mirror_image(
    room, monkeypatch, mirrored, registered
):
    registrar = Registrar(FPFH(VOXEL))
    shapes = [registrar.describe(points) for points in (room.source, room.target)]
    sure = replace(registrar.match(*shapes), registered=True, confidence=0.9)
    monkeypatch.setattr(Registrar, "register", lambda *_, **__: sure)
    monkeypatch.setattr(Registrar, "assess", lambda *_: sure)
    monkeypatch.setattr(diagnostics, "mirrored", lambda *_: mirrored)
    refused = replace(sure, registered=False, confidence=0.1)
    clouds = room.source, room.target
    for first in (refused, sure):
        found = register_with_fallback(first, shapes, lambda: clouds, [registrar, registrar])
        assert found.registered is registered
        assert (found.confidence >= MIN_CONFIDENCE) is registered
        assert any("mirrored" in note for note in found.notes) is not registered


def test_what_is_sure_is_not_looked_at_again(room):
    registrar = Registrar(FPFH(VOXEL))
    shapes = [registrar.describe(points) for points in (room.source, room.target)]
    sure = replace(registrar.match(*shapes), registered=True, confidence=0.99)
    assert (
        register_with_fallback(sure, shapes, pytest.fail, [registrar]).T_target_source is sure.T_target_source
    )
