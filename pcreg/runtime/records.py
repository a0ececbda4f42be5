"""The record file of a run: a JSON line per pair, written once the pair is done.

A run that was stopped continues. Every line holds the settings of its run and a checksum of the code, so that
lines of different runs cannot be mixed.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from pcreg.runtime.errors import InputError, refusing
from pcreg.runtime.files import write_text, writing

PACKAGE = Path(__file__).parents[1]

# Sources that compute descriptions, registrations, and figures of `pcreg evaluate`
DESCRIBING = ("arrays.py", "features", "geometry", "io", "kernels", "models")
REGISTERING = (*DESCRIBING, "registration", "weights/verdict.safetensors")
EVALUATING = (*REGISTERING, "datasets", "evaluation")


@cache
def code_fingerprint(*places: str) -> str:
    """Checksum, twelve hexadecimal digits, of code of the package.

    `places` are files, or folders of which all Python files count. It is computed once per process, which
    keeps running the code that it has loaded.
    """
    digest = hashlib.sha256()
    for place in sorted(PACKAGE / each for each in places):
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(f"{path.relative_to(place.parent)}".encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _dumped(values: dict[str, Any]) -> str:
    """One line of JSON; NumPy's numbers and arrays become Python's."""
    return json.dumps(values, allow_nan=False, default=lambda value: value.tolist())


class Records:
    """The records of a run in a file, by pair name.

    `run` holds all that the figures depend on. Raises InputError, with the first difference and the `remedy`,
    if the file holds records of another run, and if a line before the last one is damaged.
    """

    def __init__(
        self, path: Path, run: dict[str, Any], remedy: str = "give this one a folder of its own with out="
    ):
        self.path = path
        self.run = json.loads(_dumped(run))  # as it comes back from the file
        self.by_pair = {record["pair"]: record for record in self._whole_lines()}
        for record in self.by_pair.values():
            if record["run"].get("code") != self.run.get("code"):
                raise InputError(f"{path}: other code than today's wrote it, as before an update; {remedy}")
            if difference := first_difference(record["run"], self.run):
                raise InputError(f"{path}: holds another run ({difference}); use the same, or {remedy}")

    def add(self, record: dict[str, Any]) -> None:
        """Append a record, whose key `pair` is its name and whose values hold no NaN.

        Raises OutputError if it cannot be written; the next run drops an incomplete line.
        """
        line = _dumped({**record, "run": self.run})
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(line + "\n")
        self.by_pair[record["pair"]] = json.loads(line)  # as it comes back from the file

    def order(self, names: list[str]) -> None:
        """Sort the lines of the file by these pair names, as workers finish in any order."""
        place = {name: number for number, name in enumerate(names)}
        ordered = sorted(self.by_pair, key=lambda name: place.get(name, len(place)))
        if ordered != list(self.by_pair):
            self.by_pair = {name: self.by_pair[name] for name in ordered}
            write_text(self.path, "".join(json.dumps(r) + "\n" for r in self.by_pair.values()))

    def _whole_lines(self) -> list[dict[str, Any]]:
        """The records of the file, from which an incomplete last line is removed."""
        if not self.path.is_file():
            return []
        whole, newline, rest = self.path.read_text("utf-8", "surrogateescape").rpartition("\n")
        if rest:
            write_text(self.path, whole + newline)
        records = []
        for number, line in enumerate(whole.splitlines(), start=1):
            damaged = f"{self.path}: line {number} is damaged; delete that line"
            with refusing(damaged, ValueError, KeyError, TypeError):
                record = json.loads(line)
                records.append({"pair": record["pair"], "run": record["run"], **record})
        return records


def first_difference(there: Any, here: Any, key: str = "") -> str:
    """The first difference of two nested dicts in words, '' if there is none."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted(there.keys() | here.keys()):
            if words := first_difference(there.get(name), here.get(name), f"{key}.{name}".lstrip(".")):
                return words
        return ""
    return "" if there == here else f"{key} is {there} there and {here} here"
