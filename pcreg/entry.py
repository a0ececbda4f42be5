"""What the entry scripts have in common: compose the configuration, say plainly what is wrong with it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, InstantiationException
from omegaconf import DictConfig, OmegaConf

from pcreg.errors import InputError
from pcreg.termination import termination

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def compose_config(name: str, overrides: list[str]) -> DictConfig:
    """configs/<name>.yaml under Hydra overrides such as `data.root=/data/kitti`.

    Raises InputError for a key that does not exist or a mandatory one (`???`) without a value.
    """
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        try:
            cfg = compose(name, overrides)
        except HydraException as error:
            lines = [str(each).splitlines()[0] for each in (error, error.__cause__) if each]
            raise InputError(
                f"{': '.join(line.rstrip('.') for line in lines)}; --help shows every key"
            ) from error
        groups = [each for each in overrides if (CONFIGS / each.split("=")[0]).is_dir()]
        usual = compose(name, groups)
    _check_kinds(OmegaConf.to_container(usual), OmegaConf.to_container(cfg))
    for key in _missing(OmegaConf.to_container(cfg)):
        raise InputError(f"{key} has no value; add {key}=... to the command")
    return cfg


def _check_kinds(usual: Any, given: Any, key: str = "") -> None:
    """Refuse a word where the configuration has a number, a switch or a list."""
    if isinstance(usual, dict) and isinstance(given, dict):
        for name in usual.keys() & given.keys():
            _check_kinds(usual[name], given[name], f"{key}.{name}" if key else name)
        return
    is_number = isinstance(usual, int | float) and not isinstance(usual, bool)
    for kind, expected, allowed in (
        ("a number", is_number, int | float),
        ("true or false", isinstance(usual, bool), bool),
        ("a list", isinstance(usual, list), list),
    ):
        if expected and given is not None and not isinstance(given, allowed):
            raise InputError(f"{key}={given}: {kind} is needed, such as {usual}")


def _missing(node: Any, key: str = "") -> Iterator[str]:
    """The keys that are `???`; OmegaConf's own search stops at interpolations of such keys."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _missing(value, f"{key}.{name}" if key else name)
    elif node == "???":
        yield key


def run(name: str, main: Callable[[DictConfig], Any]) -> None:
    """Run main(cfg) as a command: status 0, or one sentence and status 2 on bad input."""
    arguments = sys.argv[1:]
    try:
        if asked := {"-h", "--help"} & set(arguments):
            print(_help(name, [each for each in arguments if each not in asked]))
            return
        with termination():
            main(compose_config(name, arguments))
    except (InputError, InstantiationException) as error:
        print(f"error: {_sentence(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _help(name: str, overrides: list[str]) -> str:
    """The configuration with its choices, as far as it is decided."""
    text = (CONFIGS / f"{name}.yaml").read_text()
    groups = sorted(folder for folder in CONFIGS.iterdir() if folder.is_dir())
    choices = [
        f"  {group.name}: {', '.join(sorted(f.stem for f in group.glob('*.yaml')))}" for group in groups
    ]
    # A group that is not chosen yet cannot be composed; then the file itself tells most.
    with suppress(HydraException), initialize_config_dir(str(CONFIGS), version_base="1.3"):
        text = OmegaConf.to_yaml(compose(name, overrides))
    return "\n".join(["Settings are given as key=value. Groups and their choices:", *choices, "", text])


def _sentence(error: InputError | InstantiationException) -> str:
    """What is wrong, and for an object that refused its settings, which one it was."""
    cause = error.__cause__
    if isinstance(error, InputError) or isinstance(cause, InputError):
        return str(error if isinstance(error, InputError) else cause)
    section = str(error).rpartition("full_key: ")[2]
    reason = str(cause or error).splitlines()[0]
    return f"{section}: these settings cannot be used ({reason}); --help shows the usual ones"
