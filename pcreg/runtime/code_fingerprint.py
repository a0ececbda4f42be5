"""A checksum over code and all that it imports, for results on disk to name the code that computed them."""

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

PACKAGE = __name__.partition(".")[0]


@cache
def code_fingerprint(*names: str) -> str:
    """A checksum, twelve hexadecimal digits, over the source of these modules and of their `sources`.

    A name may also be that of a class or function in a module. It is computed once in a process, which keeps
    running the code that it has loaded.
    """
    digest = hashlib.sha256()
    for module, path in sorted(sources(*names).items()):
        digest.update(module.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def sources(*names: str) -> dict[str, Path]:
    """These modules and all of this package that they import, however late and through however many others.

    Found in the source, without importing anything. Modules of others count only where they are named here
    and have a file; their packages have a version.
    """
    found: dict[str, Path] = {}
    todo = [each for name in names for each in _with_packages(name)]
    while todo:
        name = todo.pop()
        while (path := _source(name)) is None and name:  # a class or function: the module that has it
            name = name.rpartition(".")[0]
        if path and name not in found:
            found[name] = path
            todo += _imported(name, path)
    return found


def named_in(settings: Any) -> Iterator[str]:
    """What of this package a configuration, of nested dicts and lists, names: classes and functions."""
    if isinstance(settings, dict | list):
        for value in settings.values() if isinstance(settings, dict) else settings:
            yield from named_in(value)
    elif isinstance(settings, str) and settings.startswith(f"{PACKAGE}."):
        yield settings


@cache
def _imported(module: str, path: Path) -> tuple[str, ...]:
    """What this file imports of this package, and the packages on the way there."""
    own = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), own)
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    ours = (name for name in names if name.partition(".")[0] == PACKAGE)
    return tuple(each for name in ours for each in _with_packages(name))


def _with_packages(name: str) -> Iterator[str]:
    """a.b.c.d: itself, a.b.c and a.b; not a, which only offers what the others have."""
    yield name
    while name.count(".") > 1:
        name = name.rpartition(".")[0]
        yield name


@cache
def _source(module: str) -> Path | None:
    """The file of a module; of those in this package found without importing the packages above it."""
    if module.partition(".")[0] != PACKAGE:
        file = getattr(sys.modules.get(module), "__file__", None)
        return Path(file) if file else None
    parts = module.split(".")
    spec, inner = find_spec(".".join(parts[:2])), parts[2:]
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.origin else None
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *inner)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None
