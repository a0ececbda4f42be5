import pytest
import torch

from pcreg.runtime import device
from pcreg.runtime.errors import InputError


def test_a_gpu_without_triton_is_not_used(monkeypatch):
    """As on Windows: the kernels are Triton's."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    assert device.choose_device("auto") == "cpu"
    assert device.choose_device("cpu") == "cpu"
    with pytest.raises(InputError, match="device=cuda: needs Triton"):
        device.choose_device("cuda")
    monkeypatch.setattr(device, "find_spec", lambda name: object())
    assert device.choose_device("auto") == "cuda"
    assert device.choose_device("cuda:0") == "cuda:0"


def test_a_missing_system_library_is_named_with_the_package_that_has_it(monkeypatch):
    def failing(_):
        raise OSError("libusb-1.0.so.0: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(device, "import_module", failing)
    with pytest.raises(InputError, match=r"libusb-1\.0\.so\.0.*install .* libusb-1\.0-0"):
        device.load_open3d()
