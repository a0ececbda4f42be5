"""Batches on a GPU: a few processes share it and do all of a pair there."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from pcreg.features.fpfh import FPFH
from pcreg.features.pretrained import WEIGHTS
from pcreg.geometry.voxel_size import Sample
from pcreg.models import torch_inference
from pcreg.registration import batch
from pcreg.registration.clouds import prepared, stored
from pcreg.registration.registrar import Registrar, _of_process
from pcreg.registration.strategy import scales as scales_module
from pcreg.runtime.errors import InputError
from tests.kernels.clouds import needs_gpu
from tests.pcreg.devices import TORCH, load_on

VOXEL = 0.1


@pytest.fixture
def order(monkeypatch):
    """Record the order of steps, with PyTorch on the CPU in the place of a GPU."""
    done, read = [], stored.as_cloud

    class CountedSample(Sample):
        @staticmethod
        def of(*cloud):
            done.append("sampled")
            return Sample.of(*cloud)

    waiting = SimpleNamespace(wait=lambda: done.append("compiled"))
    monkeypatch.setattr(prepared, "Sample", CountedSample)
    monkeypatch.setattr(scales_module, "choose_device", lambda name: name)
    monkeypatch.setattr(torch_inference, "compile_kernels", lambda architecture, device: waiting)
    monkeypatch.setattr(
        scales_module, "FCGF", SimpleNamespace(load=lambda *of: done.append("loaded") or load_on(*of))
    )
    monkeypatch.setattr(stored, "as_cloud", lambda *cloud: done.append("read") or read(*cloud))
    _of_process.cache_clear()
    return done


def test_on_a_gpu_workers_do_all_of_a_pair_there(scans, tmp_path, order):
    """Kernels are compiled first, the network is loaded once, and the answer is that of a single pair."""
    pair = str(scans / "b.ply"), str(scans / "a.ply")
    with ThreadPoolExecutor(1) as executor:
        (there,) = batch.run(Registrar(device=TORCH), [pair], tmp_path / "out", workers=executor)
    assert order[:2] == ["compiled", "read"]
    assert order.count("sampled") == 2
    assert order.count("loaded") == 2  # here, and in what stands for a worker
    assert there["run"]["device"] == TORCH
    answer = Registrar(device=TORCH).register(*pair)
    assert there["registered"] == answer.registered
    np.testing.assert_allclose(there["T_target_source"], answer.T_target_source, atol=1e-6)


def test_a_network_on_a_gpu_is_loaded_once_by_each_process(order):
    registrar = Registrar(weights=WEIGHTS, device=TORCH)
    sent = pickle.dumps(registrar)
    assert len(sent) < 1000
    there = pickle.loads(sent)
    assert there is pickle.loads(sent) is not registrar
    for name in ("weights", "device", "fingerprint"):
        assert getattr(there, name) == getattr(registrar, name)
    assert order == ["loaded", "loaded"]
    assert len(pickle.dumps(Registrar(weights=WEIGHTS))) > 1_000_000  # on the CPU it is sent


class Own(FPFH):
    __hash__ = None  # as of a dataclass


def test_a_descriptor_of_ones_own_is_sent_to_workers_even_without_a_hash(order):
    there = pickle.loads(pickle.dumps(Registrar(descriptor=Own(VOXEL, TORCH))))
    assert there.custom.voxel == VOXEL


@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_a_worker_without_the_gpu_ends_the_run_and_blames_no_pair(descriptor, scans, tmp_path, monkeypatch):
    registrar = Registrar(descriptor=descriptor, voxel=VOXEL)
    registrar.device = "cuda:99"  # as on a machine that has it
    monkeypatch.setattr(Registrar, "wait_for_kernels", lambda registrar: None)
    with pytest.raises(InputError, match=r"a worker on .*: device=cuda:99: not on this machine; use"):
        batch.run(registrar, batch.pairs_of(str(scans / "pairs.csv")), tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / "pairs.jsonl").exists()


@needs_gpu
@pytest.mark.parametrize("descriptor", ["fcgf", "fpfh"])
def test_workers_that_share_a_gpu_give_the_answers_of_one_process(descriptor, lists, tmp_path):
    registrar = Registrar(descriptor=descriptor, device=TORCH)
    records = [batch.run(registrar, lists, tmp_path / str(n), workers=n) for n in (0, 1, 3)]
    for here, one, several, pair in zip(*records, lists, strict=True):
        assert {**here, "seconds": 0} == {**one, "seconds": 0} == {**several, "seconds": 0}
        if not here["error"]:
            answer = registrar.register(*pair).to_dict()
            assert {key: here[key] for key in answer} == json.loads(json.dumps(answer))
