"""Types of settings, from the parameters of what a section builds or from default values, and their help."""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import make_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_object
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException, ValidationError

from pcreg.runtime.errors import InputError

LINE = re.compile(r"( *)(\w+):[^#]*(?:#\s*(.*))?$")  # indent, key, comment
COLUMN = 36  # where comments begin, if the value leaves room
# By configuration, settings whose default value does not show their type.
TYPES = {
    "evaluate": {"out": str | None, "limit": int | None, "workers": int | str | None},
    "train": {"name": str, "weights": str | None, "scales": list[float]}
    | dict.fromkeys(("interpolation", "ema", "backbone_rate", "positive_radius"), float)
    | {"validate": {"tau": float, "minimum": float}},
}
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "null"}
PLAIN = {kind: kind for kind in WORDS} | {Path: str}


def check(cfg: DictConfig, base: DictConfig, hints: dict[str, Any], key: str = "") -> None:
    """Bring the values of `cfg` to their types.

    The types are `hints`, for a section those of the parameters of what it builds, or that of the value in
    `base`, the configuration before any value is changed. Raises InputError for a value of another type and
    for a key that `base` and `hints` lack.
    """
    defaults = OmegaConf.to_container(base)
    for name in cfg:
        full = f"{key}.{name}" if key else name
        if name not in base and name not in hints:
            raise InputError(f"{full} is no setting{did_you_mean(full, keys_of(base, key))}")
        if OmegaConf.is_missing(cfg, name) or OmegaConf.is_interpolation(cfg, name) or name.startswith("_"):
            continue
        value, default, hint = cfg[name], defaults.get(name), hints.get(name, Any)
        if name in base and OmegaConf.is_interpolation(base, name):
            with suppress(OmegaConfBaseException):  # of a value that is missing
                default = base[name]
        if isinstance(value, DictConfig) and (isinstance(hint, dict) or hint not in PLAIN):
            below = base[name] if isinstance(default, dict) else OmegaConf.create()
            built = hints_of(get_object(value["_target_"])) if "_target_" in value else {}
            check(value, below, hint if isinstance(hint, dict) else built, full)
        elif isinstance(default, dict) and value is not None:
            raise InputError(f"{full}={value}: is a section; set {full}.{next(iter(default), 'KEY')}=...")
        else:
            hint = _supported(Any if isinstance(hint, dict) else hint)
            if hint is Any and isinstance(default, bool | int | float | list | str):
                hint = float if type(default) is int and "_target_" in cfg else type(default)
                hint = list[type(default[0])] if hint is list and default else hint
            cfg[name] = _typed(value, hint, default, full)


def hints_of(built: Any) -> dict[str, Any]:
    """The type of every parameter of a class or function."""
    try:
        hints = get_type_hints(built.__init__ if inspect.isclass(built) else built)
    except NameError:  # of a type that only type checkers are shown
        hints = {}
    return {name: hints.get(name, Any) for name in inspect.signature(built).parameters}


def keys_of(cfg: DictConfig, key: str = "") -> list[str]:
    """All keys of a configuration, sections and their content, such as data and data.root."""
    return [each for each, _ in items_of(OmegaConf.to_container(cfg), key)]


def items_of(node: dict[str, Any], key: str = "") -> Iterator[tuple[str, Any]]:
    """Key and value of every section and setting below a node."""
    for name, value in node.items():
        full = f"{key}.{name}" if key else name
        yield full, value
        if isinstance(value, dict):
            yield from items_of(value, full)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Words to append: the key that ends most like this one, of the same section if there is one."""
    parts = [each.rpartition(".") for each in known]
    section, _, end = word.rpartition(".")
    for sections in ({section}, {each for each, _, _ in parts}):
        ends = {each[2]: "".join(each) for each in reversed(parts) if each[0] in sections}
        if near := get_close_matches(end, ends, 1):
            return f"; did you mean {ends[near[0]]}?"
    return "; --help shows every key"


def _supported(hint: Any) -> Any:
    """The type as OmegaConf can check it; Any for others, such as a union with a list."""
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        if any(get_origin(part) or part not in PLAIN for part in parts):
            return Any
        return Union[tuple(dict.fromkeys(PLAIN[part] for part in parts))]  # noqa: UP007
    if get_origin(hint) in (list, tuple, Sequence):
        return list[_supported(parts[0])]
    return PLAIN.get(hint, Any)


def _typed(value: Any, hint: Any, default: Any, key: str) -> Any:
    """The value in its type; null passes where it is the default."""
    if value is None and default is None:
        return None
    setting = OmegaConf.structured(make_dataclass("Setting", [("value", hint, MISSING)]))
    try:
        if hint is bool and not isinstance(value, bool):
            raise ValidationError("OmegaConf takes any number for a switch")
        setting.value = value
    except ValidationError as error:
        such = "" if default is None or isinstance(default, str) else f", such as {default}"
        raise InputError(f"{key}={value}: {_words(hint)} is needed{such}") from error
    return OmegaConf.to_container(setting)["value"]


def _words(hint: Any) -> str:
    if get_origin(hint) is list:
        return f"a list, each {_words(get_args(hint)[0])},"
    return " or ".join(map(_words, get_args(hint))) or WORDS.get(hint, "a list")


def setting_help(configs: Path, name: str, overrides: list[str]) -> str:
    """The groups of settings with their choices, and all settings as the overrides leave them.

    Comments are those of configs/NAME.yaml and of the files of the groups. Raises HydraException for
    overrides that cannot be composed.
    """
    cfg = _decided(configs, name, overrides)
    words = {}
    for place, choice in cfg.hydra.runtime.choices.items():
        group, _, section = place.partition("@")
        if choice and (configs / group).is_dir():
            # The comments of the chosen file take the place of those of its siblings.
            for path in sorted((configs / group).glob("*.yaml"), key=lambda path: path.stem == choice):
                for key, comment in comments(path).items():
                    if key or path.stem == choice:
                        words[f"{section or group}{f'.{key}' if key else ''}"] = comment
    words |= comments(configs / f"{name}.yaml")
    groups = sorted(folder for folder in configs.iterdir() if folder.is_dir())
    choices = [f"  {each.name}: {', '.join(sorted(f.stem for f in each.glob('*.yaml')))}" for each in groups]
    shown = {key: value for key, value in OmegaConf.to_container(cfg).items() if key != "hydra"}
    return "\n".join(
        ["Settings are given as key=value. Groups and their choices:", *choices, "", *_lines(shown, words)]
    )


def comments(path: Path) -> dict[str, str]:
    """The comments of a configuration file by key, such as augment.jitter; under "" its first line's."""
    found, parents = {}, [""]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and not line.startswith("# @") and not found:
            found[""] = line[2:]
        if match := LINE.match(line):
            indent, key, comment = match.groups()
            parents[len(indent) // 2 + 1 :] = [key]
            if comment:
                found[".".join(parents[1:])] = comment
    return found


def _decided(configs: Path, name: str, overrides: list[str]) -> DictConfig:
    """The configuration as Hydra composes it; without the groups that have yet to be chosen (`???`)."""
    defaults = yaml.safe_load((configs / f"{name}.yaml").read_text(encoding="utf-8"))["defaults"]
    undecided = [
        group for each in defaults if isinstance(each, dict) for group in each if each[group] == "???"
    ]
    left_out = [
        f"~{group}" for group in undecided if not any(each.startswith(f"{group}=") for each in overrides)
    ]
    with initialize_config_dir(str(configs), version_base="1.3"):
        return compose(name, [*left_out, *overrides], return_hydra_config=True)


def _lines(settings: dict[str, Any], words: dict[str, str]) -> Iterator[str]:
    """A line for each key but those with an underscore, which say which class is built."""
    for key, value in items_of(settings):
        name = key.rpartition(".")[2]
        if name.startswith("_"):
            continue
        flow = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
        shown = "" if isinstance(value, dict) else f" {value if isinstance(value, str) and value else flow}"
        line = f"{'  ' * key.count('.')}{name}:{shown}"
        yield f"{line:{COLUMN}}  # {words[key]}" if words.get(key) else line
