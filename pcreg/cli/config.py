"""Settings of `evaluate` and `train`: compose, check and explain them, and run the verb.

A setting has the type of the parameter of the class or function that its section builds, or else the type of
its default value.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib.resources import files
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Literal

import pydantic
import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import InstantiationException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pcreg.cli import exit_status, options
from pcreg.runtime.errors import InputError, first_line, refusing

CONFIGS = Path(str(files("pcreg.configs")))
LINE = re.compile(r"( *)(\w+):[^#]*(?:#\s*(.*))?$")  # indent, key, comment
# Overrides whose value is a path, which may hold any character; slashes at the end are left out
PATH = re.compile(r"((?:[\w@.]+\.)?(?:root|out|weights|cache)=)([^\"'$[{].*?)/*")
COLUMN = 36  # at which comments begin in the help, unless the value is longer
# By configuration, settings whose default value does not show their type or bounds.
TYPES = {
    "evaluate": {
        "out": Annotated[str, pydantic.Field(min_length=1)] | None,
        "cache": Annotated[str, pydantic.Field(min_length=1)],
        "limit": pydantic.PositiveInt | None,
        "workers": pydantic.PositiveInt | str | None,
        "seeds": list[Annotated[int, pydantic.Field(ge=0, lt=2**31)]],
    },
    "train": {
        **{"name": str, "weights": str | None, "scales": list[float]},
        "out": Annotated[str, pydantic.Field(min_length=1)],
        "precision": Literal["float32", "bfloat16"],
        "positive_radius": pydantic.PositiveFloat,
        **dict.fromkeys(("interpolation", "ema"), Annotated[float, pydantic.Field(ge=0, lt=1)]),
        **dict.fromkeys(("seed", "workers"), pydantic.NonNegativeInt),
        **dict.fromkeys(("epochs", "maximum_points", "checkpoint_every"), pydantic.PositiveInt),
        "validate": dict.fromkeys(("every", "pairs", "points"), pydantic.PositiveInt)
        | {"tau": pydantic.PositiveFloat | None},
    },
}


def compose_config(name: str, overrides: list[str], own: Path | None = None) -> DictConfig:
    """Compose configs/<name>.yaml with Hydra overrides such as `data.root=/data/kitti`.

    A folder `own` may add choices to the groups. Raises InputError for a key that does not exist, a value of
    another type, a mandatory key (`???`) without a value, and an interpolation that cannot be resolved.
    """

    def is_group(override: str) -> bool:
        return (CONFIGS / re.split("[@=]", override.lstrip("+~"))[0]).is_dir()

    base = _composed(name, list(filter(is_group, overrides)), own)
    cfg = _composed(name, overrides, own, flat(base))
    check(cfg, base, TYPES[name])
    for key, value in flat(cfg).items():
        if value == MISSING:
            raise InputError(f"{key} has no value; add {key}=... to the command")
    try:
        OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise InputError(f"{error.full_key}: {first_line(error)}; --help shows every key") from error
    return cfg


def _quoted(override: str) -> str:
    """Quote a path, in which Hydra would read brackets and equals signs as grammar and refuse accents."""
    path = PATH.fullmatch(override)
    if not path or path[2].lower() == "null":
        return override
    value = os.path.expanduser(path[2])  # Hydra needs each backslash before a quotation mark twice
    value = re.sub(r'(\\*)("|$)', lambda end: 2 * end[1] + end[2].replace('"', r"\""), value)
    return f'{path[1]}"{value}"'


def _choices(group: str, own: Path | None) -> dict[str, Path]:
    """Files of a group by name, of the folder `own` and of pcreg; the latter take precedence."""
    folders = filter(None, [own, CONFIGS])
    return {path.stem: path for folder in folders for path in sorted((folder / group).glob("*.yaml"))}


def _composed(
    name: str, overrides: list[str], own: Path | None, keys: Iterable[str] = (), **more: bool
) -> DictConfig:
    """Compose by Hydra; InputError, with the nearest of the `keys`, for an override that it refuses."""
    overrides = [_quoted(each) for each in overrides]
    if own:
        place = str(own.absolute()).replace("'", r"\'")
        overrides = [*overrides, f"hydra.searchpath=['file://{place}']"]

    def protocol_of(data: str) -> str:
        """Protocol with the name of a data set, or else that of own scans."""
        named = "3dmatch" if data == "3dlomatch" else data
        return named if named in _choices("protocol", own) else "folder"

    OmegaConf.register_new_resolver("protocol_of", protocol_of, replace=True)
    try:
        with initialize_config_dir(str(CONFIGS), version_base="1.3"):
            return compose(name, overrides, **more)
    except Exception as error:  # Hydra raises nearly any exception for malformed overrides
        lines = [first_line(each).rstrip(".") for each in (error, error.__cause__) if each]
        remedy = "; --help shows every key"
        if unknown := re.match("Could not override '(.+)'", lines[0]):
            lines, remedy = [f"{unknown[1]} is not a setting"], did_you_mean(unknown[1], keys)
        elif lines[0].startswith("Ambiguous value"):
            remedy = "; give one value, or several in brackets such as seeds=[0,1]"
        elif choice := re.search("Could not find '(.+)/(.+)'", lines[0]):
            remedy = did_you_mean(choice[2], _choices(choice[1], own))
        raise InputError(f"{': '.join(lines)}{remedy}") from error


def run(name: str, command: Callable[[DictConfig], Any], arguments: list[str], description: str) -> int:
    """Run the verb `name`, which is command(cfg) with configs/<name>.yaml; returns its exit status.

    The arguments are overrides and flags. The help text begins with the description.
    """
    usage = f"pcreg {name} [FLAG ...] [KEY=VALUE ...]"
    parser = options.parser_of(name, description, usage=usage, add_help=False, allow_abbrev=False)
    options.add_flags(parser)
    words = "a folder with settings of your own, such as data/mine.yaml, and the modules that these name"
    parser.add_argument("--config-dir", type=options.folder, metavar="DIR", help=words)
    parser.add_argument("-h", "--help", action="store_true", help="explain flags and settings")
    flags, overrides = parser.parse_known_args(arguments)
    unknown = [each for each in overrides if each.startswith("-")]
    own = flags.config_dir

    def go() -> None:
        try:
            if unknown:
                raise InputError(f"{unknown[0]}: no such flag; --help shows all")
            if own and not own.is_dir():
                raise InputError(f"{own}: --config-dir is not a folder; name one with groups such as data/")
            if own:
                sys.path.insert(0, str(own.absolute()))
            if flags.help:
                print(f"{parser.format_help()}\n{setting_help(name, overrides, own)}")
            else:
                with exit_status.output(quiet=flags.quiet, verbose=flags.verbose):
                    command(compose_config(name, overrides, own))
        except InstantiationException as error:
            cause = error.__cause__
            if isinstance(cause, InputError):
                raise cause from error
            section = str(error).rpartition("full_key: ")[2]
            words = f"cannot be used ({first_line(cause or error)}); --help shows the usual ones"
            raise InputError(f"{section}: these settings {words}") from error

    return exit_status.status(go, with_traceback=flags.traceback, own=own)


def check(cfg: DictConfig, base: DictConfig, hints: dict[str, Any], key: str = "") -> None:
    """Convert the values of `cfg` to their types, in place.

    `hints` has types by key; in a section with a `_target_` the types are those of its parameters. Other
    types are those of the values in `base`, the configuration before values are set. Raises InputError for a
    value of another type, and for a key that is neither in `base` nor in `hints`.
    """
    defaults = OmegaConf.to_container(base)
    for name in cfg:
        full = f"{key}.{name}" if key else name
        if name not in base and name not in hints:
            raise InputError(f"{full} is not a setting{did_you_mean(full, flat(base, key))}")
        if OmegaConf.is_missing(cfg, name) or OmegaConf.is_interpolation(cfg, name) or name.startswith("_"):
            continue
        value, default, hint = cfg[name], defaults.get(name), hints.get(name, Any)
        if name in base and OmegaConf.is_interpolation(base, name):
            with suppress(OmegaConfBaseException):  # it may refer to a missing value
                default = base[name]
        if isinstance(value, DictConfig) and hint not in (bool, int, float, str):
            below = base[name] if isinstance(default, dict) else OmegaConf.create()
            check(value, below, hint if isinstance(hint, dict) else _hints(value), full)
        elif isinstance(default, dict) and value is not None:
            raise InputError(f"{full}={value}: is a section; set {full}.{next(iter(default), 'KEY')}=...")
        else:
            hint = Any if isinstance(hint, dict) else hint
            if hint is Any and isinstance(default, bool | int | float | list | str):
                hint = float if type(default) is int and "_target_" in cfg else type(default)
                hint = list[type(default[0])] if hint is list and default else hint
            plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            cfg[name] = _typed(plain, hint, default, full)


def _hints(section: DictConfig) -> dict[str, Any]:
    """Types of the parameters of the class or function that a section builds, by name."""
    if not (target := section.get("_target_")):
        return {}
    words = "cannot be imported ({error}); put a module that has it into --config-dir"
    with refusing(f"{target}: {words}", ImportError, AttributeError):
        parameters = signature(resolve_name(target), eval_str=True).parameters
    return {name: each.annotation for name, each in parameters.items()}


def flat(node: DictConfig | dict[str, Any], key: str = "") -> dict[str, Any]:
    """Sections and settings below a node by key, such as data and data.root."""
    found: dict[str, Any] = {}
    for name, value in (node if isinstance(node, dict) else OmegaConf.to_container(node)).items():
        full = f"{key}.{name}" if key else name
        found |= {full: value} | (flat(value, full) if isinstance(value, dict) else {})
    return found


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of a message about an unknown key: the most similar one, of its section if possible."""
    parts = [each.rpartition(".") for each in known]
    section, _, end = word.rpartition(".")
    for sections in ({section}, {each for each, _, _ in parts}):
        ends = {each[2]: "".join(each) for each in reversed(parts) if each[0] in sections}
        if near := get_close_matches(end, ends, 1):
            return f"; did you mean {ends[near[0]]}?"
    return "; --help shows every key"


def _typed(value: Any, hint: Any, default: Any, key: str) -> Any:
    """Convert a value to its type, if pydantic can check it; None is valid where it is the default."""
    if value is None and default is None:
        return None
    try:
        config = pydantic.ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
        typed = pydantic.TypeAdapter(hint, config=config).validate_python(value)
    except pydantic.PydanticUserError:
        return value
    except pydantic.ValidationError as error:
        such = "" if default is None or isinstance(default, str) else f", such as {default}"
        raise InputError(f"{key}={value}: {error.errors()[0]['msg']}{such}") from error
    return str(typed) if isinstance(typed, Path) else typed


def setting_help(name: str, overrides: list[str], own: Path | None = None) -> str:
    """List the groups of settings with their choices, and all settings with their values and comments.

    Comments are those of configs/NAME.yaml and of the files of the groups. Raises InputError for overrides
    that cannot be composed.
    """
    if name == "train" and not any(each.startswith("experiment=") for each in overrides):
        overrides = ["~experiment", *overrides]  # help needs no experiment
    cfg = _composed(name, overrides, own, return_hydra_config=True)
    words = {}
    for place, choice in cfg.hydra.runtime.choices.items():
        group, _, section = place.partition("@")
        if path := _choices(group, own).get(choice):
            for key, comment in comments(path).items():
                words[f"{section or group}{f'.{key}' if key else ''}"] = comment
    words |= comments(CONFIGS / f"{name}.yaml")
    lines = ["Groups of settings and their choices; below them, ??? stands for a value that has to be given:"]
    defaults = [each for each in OmegaConf.load(CONFIGS / f"{name}.yaml").defaults if each != "_self_"]
    for group in sorted({place.partition("@")[0] for each in defaults for place in each}):
        lines.append(f"  {group}: {', '.join(sorted(_choices(group, own)))}")
    lines.append("")
    for key, value in flat(cfg).items():
        _, _, last = key.rpartition(".")
        if key.partition(".")[0] == "hydra" or last.startswith("_"):  # such as _target_
            continue
        flow = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
        shown = "" if isinstance(value, dict) else f" {value if isinstance(value, str) and value else flow}"
        line = f"{'  ' * key.count('.')}{last}:{shown}"
        lines.append(f"{line:{COLUMN}}  # {words[key]}" if words.get(key) else line)
    return "\n".join(lines)


def comments(path: Path) -> dict[str, str]:
    """Comments of a configuration file by key, such as augment.jitter; "" is that of the first line.

    A key without a comment has the comment of the file from which it is inherited.
    """
    found: dict[str, str] = {}
    for parent in OmegaConf.load(path).get("defaults", ()):
        if isinstance(parent, str) and parent != "_self_":
            found |= comments(path.parent / f"{parent}.yaml")
    parents, first = [""], ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and not line.startswith("# @") and not first:
            found[""] = first = line[2:]
        if match := LINE.match(line):
            indent, key, comment = match.groups()
            parents[len(indent) // 2 + 1 :] = [key]
            if comment:
                found[".".join(parents[1:])] = comment
    return found
