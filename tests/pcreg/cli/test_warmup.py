"""`pcreg warmup` without a GPU; tests/pcreg/models/test_warmup.py tests the compilation."""

from unittest.mock import Mock

import pytest
import torch

from pcreg.cli import warmup
from pcreg.models import torch_inference


def test_without_a_gpu_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert warmup.main([]) == 2
    sentence = "this machine has no GPU for pcreg; the CPU needs no warmup"
    assert capsys.readouterr() == ("", f"error: {sentence}\n")


@pytest.mark.parametrize(
    ("device", "sentence"), [("cpu", "nothing is compiled for the CPU"), ("cuda:99", "not on this machine")]
)
def test_other_devices_are_refused(device, sentence, monkeypatch, capsys):
    choose = warmup.choose_device
    monkeypatch.setattr(warmup, "choose_device", lambda name: "cuda" if name == "auto" else choose(name))
    assert warmup.main(["--device", device]) == 2
    assert sentence in capsys.readouterr().err


def test_all_is_waited_for_and_counted(monkeypatch, capsys):
    all_kernels = Mock(**{"wait.return_value": 57})
    monkeypatch.setattr(warmup, "choose_device", lambda name: "cuda")
    monkeypatch.setattr(torch_inference, "compile_kernels", lambda *what: all_kernels)
    assert warmup.main([]) == 0
    assert capsys.readouterr().out.startswith("57 kernels for fcgf.safetensors are")
