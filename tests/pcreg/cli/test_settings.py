"""Settings of the verbs: each has a type and a comment, and wrong values are refused in words."""

import importlib
import inspect
import os
import sys

import pytest
from hydra.utils import get_class
from omegaconf import OmegaConf

from pcreg.cli import config
from pcreg.cli.config import CONFIGS, comments, compose_config, setting_help
from pcreg.runtime.errors import InputError

GROUPS = sorted(path for path in CONFIGS.iterdir() if path.is_dir())


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ("limit=abc", "limit=abc: Input should be a valid integer"),
        ("seeds=[0.5]", "seeds=[0.5]: Input should be a valid integer, got a number"),
        ("seeds=1", "seeds=1: Input should be a valid list, such as [0, 1, 2]"),
        ("out=[a]", "out=['a']: Input should be a valid string"),
        ("cache=null", "cache=None: Input should be a valid string"),
        ("protocol.edge_length=long", "protocol.edge_length=long: Input should be a valid number"),
        ("protocol.samples=[1.5]", "protocol.samples=[1.5]: Input should be a valid integer"),
        ("protocol.mutual=1.5", "protocol.mutual=1.5: Input should be a valid boolean, such as False"),
        ("protocol.mutual={a:1}", "protocol.mutual={'a': 1}: Input should be a valid boolean, such as False"),
        ("protocol.samples=[]", "protocol.samples=[]: "),
        ("protocol.draw=straws", "protocol.draw=straws: Input should be 'points' or 'matches'"),
        ("protocol.n=2", "protocol.n=2: Input should be greater than or equal to 3, such as 3"),
        ("protocol.confidence=1", "protocol.confidence=1: Input should be less than 1, such as 0.999"),
        ("protocol.distance=0", "protocol.distance=0: Input should be greater than 0, such as 0.05"),
        ("descriptor.weights=[]", "descriptor.weights=[]: Input should be a valid string"),
        ("descriptor.scales=2", "descriptor.scales=2: Input should be an instance of Sequence, such as [1,"),
        ("descriptor={a:1}", "descriptor"),
        ("data=3", "Config group override must be a string"),
        ("limt=2", "limt is not a setting; did you mean limit?"),
        ("root=x", "root is not a setting; did you mean data.root?"),
        ("data.rot=x", "data.rot is not a setting; did you mean data.root?"),
        ("+data.rot=x", "data.rot is not a setting; did you mean data.root?"),
        ("+descriptor.colour=red", "descriptor.colour is not a setting; --help shows every key"),
        ("data=3dmtch", "did you mean 3dmatch?"),
        ("estimator=open3d,ransac", "give one value, or several in brackets"),
        ("descriptor=unheard", "'descriptor/unheard'; --help shows every key"),
        ("protocol=system protocol.descriptor=sift", "sift: Input should be 'fcgf' or 'fpfh'"),
        ("protocol=system protocol.viewpoint=here", "viewpoint=here: Input should be 'auto' or 'sensor'"),
        ("protocol=system protocol.voxel=0", "protocol.voxel=0: Input should be greater than 0"),
        ("data=folder data.voxel=0", "data.voxel=0: Input should be"),
        ("data=folder data.neighbours=0", "data.neighbours=0: Input should be"),
        ("data=folder data.minimum_distance=-1", "data.minimum_distance=-1: Input should be"),
        ("protocol=system protocol.recall=luck", "luck: Input should be 'information', 'rmse' or 'gate'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(overrides, sentence):
    with pytest.raises(InputError) as refused:
        compose_config("evaluate", ["data.root=x", *overrides.split()])
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("out=6", "out", "6"),
        ("data.root=~/Köln (1)/a=b", "data.root", os.path.expanduser("~/Köln (1)/a=b")),
        ("data.root=C:\\scans\\", "data.root", "C:\\scans\\"),
        ("data.root=7", "data.root", "7"),
        ("data.root=/scans//", "data.root", "/scans"),
        ("limit=null", "limit", None),
        ("limit=3", "limit", 3),
        ("seeds=[4]", "seeds", [4]),
        ("protocol.edge_length=null", "protocol.edge_length", None),
        ("protocol.edge_length=1", "protocol.edge_length", 1.0),
        ("protocol.samples=[100,null]", "protocol.samples", [100, None]),
        ("data.scenes=[a]", "data.scenes", ["a"]),
    ],
)
def test_what_fits_is_brought_to_its_type(override, key, value):
    found = OmegaConf.select(compose_config("evaluate", ["data.root=x", override]), key)
    assert found == value
    assert type(found) is type(value) or isinstance(value, list)


def test_the_type_of_a_setting_that_is_taken_from_another_is_that_of_the_other():
    given = ["experiment=overfit", "data.root=x"]
    assert compose_config("train", [*given, "validate.pairs=3"]).validate.pairs == 3
    with pytest.raises(InputError, match=r"validate.pairs=abc: Input should be a valid integer"):
        compose_config("train", [*given, "validate.pairs=abc"])


def test_a_parameter_that_the_configuration_does_not_name_may_be_added():
    cfg = compose_config("train", ["experiment=folder", "data.root=x", "+optimizer.nesterov=true"])
    assert cfg.optimizer.nesterov is True


@pytest.mark.parametrize("experiment", sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml")))
def test_every_experiment_composes_with_every_replay(experiment):
    for more in ([], ["data@replay=folder", "replay.root=y", "protocol=kitti"]):
        root = [] if experiment == "simulated" else ["data.root=x"]
        cfg = compose_config("train", [f"experiment={experiment}", *root, *more])
        assert (cfg.name, cfg.out) == (experiment, f"outputs/train/{experiment}")
        assert not root or cfg.validation.root == "x"
        assert cfg.optimizer.lr > 0


def test_comments_are_found_by_key(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "# @package _global_\n# All.\na: 1  # one\nb:\n  c: ${d}   # two: three\n  d: {}\ne: 2  # last\n"
    )
    assert comments(tmp_path / "a.yaml") == {"": "All.", "a": "one", "b.c": "two: three", "e": "last"}


@pytest.mark.parametrize("name", ["evaluate", "train"])
def test_help_explains_every_key(name):
    chosen = [[]]
    if name == "evaluate":
        groups = [group for group in GROUPS if group.name in ("data", "descriptor", "protocol", "estimator")]
        chosen += [[f"{group.name}={path.stem}"] for group in groups for path in group.glob("*.yaml")]
    else:
        chosen += [[f"experiment={path.stem}"] for path in (CONFIGS / "experiment").glob("*.yaml")]
    for overrides in chosen:
        listed = setting_help(name, overrides).split("\n\n")[1].splitlines()
        assert len(listed) > 25
        assert [line for line in listed if "  # " not in line] == [], overrides


def test_help_shows_the_values_as_they_are_set():
    listed = setting_help("evaluate", ["data=folder", "data.root=scans (1)/a=b", "limit=20"])
    assert "  root: scans (1)/a=b                 # the folder, see docs/data.md" in listed
    assert "limit: 20                             # number of pairs to score" in listed


def test_help_on_what_is_no_setting(capsys):
    assert config.run("evaluate", None, ["limt=2", "--help"], "") == 2
    assert "limt is not a setting" in capsys.readouterr().err


MINE = """# Mine.
_target_: {module}.Mine
root: ???  # the folder
"""
CLASS = """class Mine:
    def __init__(self, root: str, voxel: float = 0.1): ...
    def fail(cfg):
        raise LookupError("of mine")
"""


def test_own_settings_come_from_a_folder_with_their_modules(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", sys.path[:])
    tmp_path /= "it's mine"
    (tmp_path / "data").mkdir(parents=True)
    (tmp_path / "data" / "mine.yaml").write_text(MINE.format(module="of_this_test"))
    (tmp_path / "data" / "lost.yaml").write_text(MINE.format(module="nowhere"))
    (tmp_path / "of_this_test.py").write_text(CLASS)

    def run(*words: str, command=lambda cfg: found.append(cfg)) -> int:
        own = ["--config-dir", str(tmp_path), *words]
        return config.run("evaluate", command, own, "")

    found = []
    assert run("data=mine", "data.root=x", "+data.voxel=1") == 0
    assert (found[0].data.voxel, found[0].protocol.name) == (1.0, "own scans")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("--config-dir=~", "--help", "data=mine") == 0
    assert "# Mine." in capsys.readouterr().out
    for words, sentence in (
        (["data=min"], "did you mean mine?"),
        (["data=lost", "data.root=x"], "nowhere.Mine: cannot be imported (No module named 'nowhere'); put"),
        (["-m", "limit=1"], "-m: no such flag"),
        (["--config-dir", "no-folder"], "no-folder: --config-dir is not a folder"),
    ):
        assert run(*words) == 2
        assert sentence in capsys.readouterr().err
    fail = importlib.import_module("of_this_test").Mine.fail
    assert run("data=mine", "data.root=x", "+data.voxel=1", command=fail) == 2
    assert "of_this_test.py, line 4: raised LookupError: of mine; correct" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["3dmatch", "kitti", "folder"])
def test_every_argument_of_a_data_set_has_its_key_and_default(name):
    cfg = OmegaConf.load(CONFIGS / "data" / f"{name}.yaml")
    parameters = inspect.signature(get_class(cfg.pop("_target_"))).parameters
    assert OmegaConf.missing_keys(cfg) == {"root"}
    assert list(cfg) == list(parameters)
    for key in set(cfg) - {"root", "benchmark"}:
        default = parameters[key].default
        assert (tuple(cfg[key]) if isinstance(default, tuple) else cfg[key]) == default
