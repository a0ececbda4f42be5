import pytest

from pcreg.runtime import open3d
from pcreg.runtime.errors import InputError


def test_a_missing_system_library_is_named_with_the_package_that_has_it(monkeypatch):
    def failing(_):
        raise OSError("libusb-1.0.so.0: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(open3d, "import_module", failing)
    with pytest.raises(InputError, match=r"libusb-1\.0\.so\.0.*install .* libusb-1\.0-0"):
        open3d.load_open3d()


def test_open3d_is_what_comes_back():
    assert open3d.load_open3d().__name__ == "open3d"
