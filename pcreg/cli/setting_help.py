"""The settings of a verb in words: every key with its value and the comment that explains it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

LINE = re.compile(r"( *)(\w+):[^#]*(?:#\s*(.*))?$")  # indent, key, comment
COLUMN = 36  # where comments begin, if the value leaves room


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


def _lines(node: dict[str, Any], words: dict[str, str], key: str = "") -> Iterator[str]:
    """A line for each key but those with an underscore, which say which class is built."""
    indent = "  " * (key.count(".") + 1 if key else 0)
    for name, value in node.items():
        if name.startswith("_"):
            continue
        full, is_section = f"{key}.{name}" if key else name, isinstance(value, dict)
        flow = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
        shown = "" if is_section else f" {value if isinstance(value, str) and value else flow}"
        comment = words.get(full, "")
        line = f"{indent}{name}:{shown}"
        yield f"{line:{COLUMN}}  # {comment}" if comment else line
        if is_section:
            yield from _lines(value, words, full)
