"""The types of settings: a section that builds an object has those of its parameters, the others are here."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, make_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hydra.utils import get_object
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import ValidationError

from pcreg.runtime.errors import InputError


@dataclass
class Evaluate:
    """Types of configs/evaluate.yaml."""

    out: str | None
    limit: int | None
    seeds: list[int]
    workers: int | str | None
    cache: str


@dataclass
class Validate:
    """Types of `validate` of configs/train.yaml."""

    every: int
    pairs: int
    points: int
    tau: float
    minimum: float


@dataclass
class Train:
    """Types of configs/train.yaml."""

    name: str
    out: str
    weights: str | None
    interpolation: float
    frozen_norms: bool
    resume: bool
    seed: int
    device: str
    workers: int
    checkpointing: bool
    precision: str
    scales: list[float]
    ema: float
    backbone_rate: float
    epochs: int
    maximum_points: int
    positive_radius: float
    checkpoint_every: int
    validate: Validate


TYPES = {"evaluate": Evaluate, "train": Train}  # by the name of the configuration
NONE = type(None)
PLAIN = {kind: kind for kind in (bool, int, float, str, NONE)} | {Path: str}
TYPE_NAMES = {  # of types, one and many
    bool: ("true or false", "true or false"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: ("a text", "texts"),
    NONE: ("null", "nulls"),
}


def check(cfg: DictConfig, base: DictConfig, types: Any, key: str = "") -> None:
    """Bring the values of `cfg` to their types; `base` is the configuration before any value is changed.

    `types` is a dataclass or what the section builds; where it leaves a type open, the value in `base` has
    it. Raises InputError for a value of another type and for a key that is not known.
    """
    hints, defaults = hints_of(types), OmegaConf.to_container(base)
    for name in cfg:
        full = f"{key}.{name}" if key else name
        if name not in base and name not in hints:
            raise InputError(f"{full} is no setting{did_you_mean(full, keys_of(base, key))}")
        if OmegaConf.is_missing(cfg, name) or OmegaConf.is_interpolation(cfg, name) or name.startswith("_"):
            continue
        value, default = cfg[name], defaults.get(name)
        if isinstance(value, DictConfig) and hints.get(name) not in PLAIN:
            below = base[name] if isinstance(default, dict) else OmegaConf.create()
            built = get_object(value["_target_"]) if "_target_" in value else hints.get(name)
            check(value, below, built, full)
        else:
            hint = _supported(hints.get(name, Any))
            if hint is Any and isinstance(default, bool | int | float | list):
                hint = float if type(default) is int else type(default)
            cfg[name] = _typed(value, hint, default, full)


def hints_of(types: Any) -> dict[str, Any]:
    """The type of every field of a dataclass, or parameter of a class or function; {} of anything else."""
    if not callable(types):
        return {}
    try:
        hints = get_type_hints(types.__init__ if inspect.isclass(types) else types)
    except NameError:  # of a type that only type checkers are shown
        hints = {}
    return {name: hints.get(name, Any) for name in inspect.signature(types).parameters}


def keys_of(cfg: DictConfig, key: str = "") -> Iterator[str]:
    """All keys of a configuration, sections and what is in them, such as data and data.root."""
    for name, value in OmegaConf.to_container(cfg).items():
        full = f"{key}.{name}" if key else name
        yield full
        if isinstance(value, dict):
            yield from keys_of(OmegaConf.create(value), full)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Words to append: the known key that ends most like this one, of the same section if there is one."""
    parts = [each.rpartition(".") for each in known]
    section, _, end = word.rpartition(".")
    for sections in ({section}, {each for each, _, _ in parts}):
        ends = {each[2]: "".join(each) for each in reversed(parts) if each[0] in sections}
        if near := get_close_matches(end, ends, 1):
            return f"; did you mean {ends[near[0]]}?"
    return "; --help shows every key"


def _supported(hint: Any) -> Any:
    """The type as OmegaConf can check it; Any for what it cannot, such as a union with a list."""
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
            raise ValidationError("no switch, though OmegaConf takes any number for one")
        setting.value = value
    except ValidationError as error:
        such = "" if default is None or isinstance(default, str) else f", such as {default}"
        raise InputError(f"{key}={value}: {_type_name(hint)} is needed{such}") from error
    return OmegaConf.to_container(setting)["value"]


def _type_name(hint: Any) -> str:
    if get_origin(hint) is list:
        kind = TYPE_NAMES.get(get_args(hint)[0])
        return f"a list of {kind[1]}" if kind else "a list"
    if get_origin(hint) is Union:
        return " or ".join(_type_name(part) for part in get_args(hint))
    return TYPE_NAMES.get(hint, ["a list"])[0]
