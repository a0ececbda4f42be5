"""What the entry scripts have in common: compose the configuration, say plainly what is wrong with it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException, InstantiationException
from omegaconf import DictConfig, OmegaConf

from pcreg.errors import InputError

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
    for key in _missing(OmegaConf.to_container(cfg)):
        raise InputError(f"{key} has no value; add {key}=... to the command")
    return cfg


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
        if {"-h", "--help"} & set(arguments):
            with initialize_config_dir(str(CONFIGS), version_base="1.3"):
                print(f"Overrides (key=value) of configs/{name}.yaml:\n\n{OmegaConf.to_yaml(compose(name))}")
            return
        main(compose_config(name, arguments))
    except (InputError, InstantiationException) as error:
        cause = error if isinstance(error, InputError) else error.__cause__
        if not isinstance(cause, InputError):
            raise
        print(f"error: {cause}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
