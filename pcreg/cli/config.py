"""Verbs with settings: compose the configuration, and say plainly what is wrong with it."""

import re
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, InstantiationException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pcreg.cli import exit_status, settings
from pcreg.cli.output import output
from pcreg.runtime import VERSION
from pcreg.runtime.errors import InputError, first_line

CONFIGS = Path(str(files("pcreg.configs")))
# The protocol of a data set that has none of its own name
PROTOCOLS = {"3dlomatch": "3dmatch"} | dict.fromkeys(("rooms", "simulated", "streets"), "folder")
OmegaConf.register_new_resolver("protocol_of", lambda data: PROTOCOLS.get(data, data), replace=True)
FLAGS = {
    "--quiet": "print nothing but errors",
    "--verbose": "log each step on stderr",
    "--traceback": "print where a fault of the program arose",
    "--version": "print the version",
    "--help": "explain the settings, as those given leave them",
    "-h": "",
}


def compose_config(name: str, overrides: list[str]) -> DictConfig:
    """configs/<name>.yaml under Hydra overrides such as `data.root=/data/kitti`.

    Raises InputError for a key that does not exist, a value of another type than `pcreg.cli.settings` says,
    a mandatory key (`???`) without a value, and an interpolation of nothing.
    """
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        groups = [each for each in overrides if (CONFIGS / re.split("[@=]", each.lstrip("+~"))[0]).is_dir()]
        base = _composed(name, groups)
        cfg = _composed(name, overrides, settings.keys_of(base))
    settings.check(cfg, base, settings.TYPES[name])
    for key, value in settings.items_of(OmegaConf.to_container(cfg)):
        if value == MISSING:
            raise InputError(f"{key} has no value; add {key}=... to the command")
    try:
        OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise InputError(f"{error.full_key}: {first_line(error)}; --help shows every key") from error
    return cfg


def _composed(name: str, overrides: list[str], keys: list[str] | None = None) -> DictConfig:
    """Compose by Hydra; InputError, with the nearest of the `keys`, for an override that it refuses."""
    try:
        return compose(name, overrides)
    except Exception as error:  # of what is no override Hydra raises nearly anything
        lines = [first_line(each).rstrip(".") for each in (error, error.__cause__) if each]
        remedy = "; --help shows every key"
        if unknown := re.match("Could not override '(.+)'", lines[0]):
            lines, remedy = [f"{unknown[1]} is no setting"], settings.did_you_mean(unknown[1], keys or [])
        elif choice := re.search("Could not find '(.+)/(.+)'", lines[0]):
            choices = [path.stem for path in (CONFIGS / choice[1]).glob("*.yaml")]
            remedy = settings.did_you_mean(choice[2], choices)
        raise InputError(f"{': '.join(lines)}{remedy}") from error


def run(
    name: str, command: Callable[[DictConfig], Any], arguments: list[str] | None = None, *, program: str
) -> int:
    """Run command(cfg) under configs/<name>.yaml; returns the exit status, see `pcreg.cli.exit_status`.

    The `arguments`, by default those of the process, are overrides and FLAGS. Help calls it `program`.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    flags = FLAGS.keys() & set(arguments)
    overrides = [each for each in arguments if each not in FLAGS]

    def go() -> int:
        if flags & {"-h", "--help"}:
            words = (f"  {flag:13}{what}\n" for flag, what in FLAGS.items() if what)
            print(f"usage: {program} [FLAG ...] [KEY=VALUE ...]\n\n{''.join(words)}")
            try:
                print(settings.setting_help(CONFIGS, name, overrides))
            except HydraException as error:
                raise InputError(f"{first_line(error)}; --help alone shows every key") from error
        elif "--version" in flags:
            print(f"pcreg {VERSION}")
        elif flags >= {"--quiet", "--verbose"}:
            raise InputError("--quiet and --verbose exclude each other; leave one out")
        else:
            try:
                with output(quiet="--quiet" in flags, verbose="--verbose" in flags):
                    command(compose_config(name, overrides))
            except InstantiationException as error:
                cause = error.__cause__
                if isinstance(cause, InputError):
                    raise cause from error
                section = str(error).rpartition("full_key: ")[2]
                raise InputError(
                    f"{section}: these settings cannot be used ({first_line(cause or error)}); --help shows "
                    "the usual ones"
                ) from error
        return 0

    return exit_status.status(go, with_traceback="--traceback" in flags)
