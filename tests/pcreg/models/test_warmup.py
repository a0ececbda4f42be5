"""Kernels compiled beforehand are those that a network launches."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from pcreg.kernels import conv
from pcreg.kernels.point_batch import PointBatch
from pcreg.kernels.pyramid import Pyramid, search_at_once
from pcreg.models import torch_inference
from pcreg.models.resunet import ResUNet
from pcreg.models.weights_file import Architecture
from tests.kernels.clouds import DEVICE, tiled_pyramid
from tests.pcreg.scenes import wavy_sheet

pytest.importorskip("triton", reason="no triton for this platform")

from pcreg.kernels.triton import blocks, launch, output_stationary


@pytest.mark.parametrize(("kernel", "processors"), [("ppf", 1), ("grid", 99)])
@torch.inference_mode()
def test_a_network_launches_what_was_compiled(kernel, processors, monkeypatch):
    monkeypatch.setattr(conv, "runs_by_tiles", lambda triplets, dtype: True)
    for each in (blocks, output_stationary):
        monkeypatch.setattr(each, "processors", lambda device: processors)
    monkeypatch.setattr(output_stationary, "_plan", cache(output_stationary._plan.__wrapped__))
    monkeypatch.setattr(launch, "Compilation", lambda launches, cores: launches)
    monkeypatch.setattr(torch_inference, "_start", lambda device: None)
    architecture = Architecture(kernel=kernel, encoder=(16, 16, 32, 80), decoder=(16, 16, 16, 32))
    network = ResUNet(architecture).to(DEVICE).eval()
    compile_kernels = torch_inference.compile_kernels.__wrapped__  # without its cache
    compiled = compile_kernels(architecture, DEVICE, torch_inference.ALL_SIZES)
    batch = PointBatch.from_clouds([wavy_sheet(1000)]).to(DEVICE)
    built = (Pyramid.build(batch, replace(architecture, voxel=voxel)) for voxel in (1e-4, 0.1))
    pyramids = list(map(tiled_pyramid, built))
    with launch.collected_launches() as needed:
        for pyramid in pyramids:
            network(pyramid)
        several = PointBatch.from_clouds([np.empty((0, 3))] * 2)
        search_at_once(several.to(DEVICE), architecture)
    names = {each.kernel.fn.__name__ for each in needed.values()}
    assert names >= {"_output_stationary", "visit"}
    assert needed.keys() <= compiled.keys()
