"""The data configurations offer what the classes take, with the same defaults."""

import inspect
from pathlib import Path

import pytest
from hydra.utils import get_class
from omegaconf import OmegaConf

CONFIGS = Path(__file__).parents[2] / "configs" / "data"


@pytest.mark.parametrize("name", ["3dmatch", "kitti", "folder"])
def test_every_argument_has_its_key_and_default(name):
    cfg = OmegaConf.load(CONFIGS / f"{name}.yaml")
    parameters = inspect.signature(get_class(cfg.pop("_target_"))).parameters
    assert OmegaConf.missing_keys(cfg) == {"root"}
    assert list(cfg) == list(parameters)
    for key in set(cfg) - {"root", "benchmark"}:
        default = parameters[key].default
        assert (tuple(cfg[key]) if isinstance(default, tuple) else cfg[key]) == default
