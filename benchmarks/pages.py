"""Put the tables of docs/results/*.json into the pages of docs/benchmarks/.

    python benchmarks/pages.py            # after a new measurement, or a change of measured code
    python benchmarks/pages.py --check    # exit status 1 if a page is not what would be written

A page names a table by `<!-- table: NAME -->`; what follows, up to `<!-- end -->`, is written here: the
table, and where its figures come from. It says so if the code has changed since, or if nobody knows.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pcreg.runtime.errors import InputError
from pcreg.runtime.files import replacing
from pcreg.runtime.records import code_fingerprint

ROOT = Path(__file__).resolve().parents[1]
PAGES, RESULTS = ROOT / "docs" / "benchmarks", ROOT / "docs" / "results"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MEASURED = ("commit", "date", "device", "versions", "command", "code", "fingerprint")


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--check", action="store_true")
    check = made.parse_args().check
    stale = [page for page in sorted(PAGES.glob("*.md")) if page.read_text() != filled(page.read_text())]
    for page in stale:
        if check:
            print(f"error: {page}: is not of docs/results; run python benchmarks/pages.py", file=sys.stderr)
        else:
            page.write_text(filled(page.read_text()))
    sys.exit(1 if check and stale else 0)


def filled(page: str) -> str:
    """The text of a page with its tables."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{table(RESULTS / f'{found[2]}.json')}\n\n{found[3]}", page)


def table(path: Path) -> str:
    """The table of a result in Markdown, and where it comes from."""
    result = load(path)
    lines = [result["columns"], ["---"] * len(result["columns"]), *result["rows"]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{origin(result['measured'])}"


def origin(measured: dict[str, Any]) -> str:
    """Where figures come from, in a sentence or three."""
    commit = f"commit {measured['commit']}" if measured["commit"] else "a commit that was not recorded"
    parts = [f"Measured at {commit}", measured["date"], measured["device"], measured["versions"]]
    text = ", ".join(part for part in parts if part)
    if measured["command"]:
        text += f", by `{measured['command']}`"
    if not measured["fingerprint"]:
        text += ". Whether the code has changed since is not known"
    elif measured["fingerprint"] != fingerprint_of(measured["code"]):
        text += ". The code has changed since"
    return f"*{text}.*"


def fingerprint_of(modules: Sequence[str]) -> str:
    """The checksum over the sub-packages of these modules of pcreg."""
    return code_fingerprint(*sorted({name.split(".")[1] for name in modules}))


def load(path: Path) -> dict[str, Any]:
    """A result; InputError if it is missing, or lacks a part."""
    try:
        result = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); measure it again") from error
    missing = {"measured", "columns", "rows"} - set(result) or set(MEASURED) - set(result["measured"])
    if missing:
        raise InputError(f"{path}: has no {min(missing)}; write it with benchmarks/pages.py")
    return result


def save(
    path: Path,
    rows: Sequence[dict[str, str]],
    *,
    device: str,
    versions: str,
    command: str,
    code: Sequence[str],
) -> None:
    """Write a table of today's code, of rows with the same keys; `code` names the modules measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    measured = {"commit": commit, "date": date.today().isoformat(), "device": device, "versions": versions}
    measured |= {"command": command, "code": list(code), "fingerprint": fingerprint_of(code)}
    write(
        path, {"measured": measured, "columns": list(rows[0]), "rows": [list(row.values()) for row in rows]}
    )


def write(path: Path, result: dict[str, Any]) -> None:
    """A result as JSON with a line per row, so that a change of a figure is a change of a line."""
    rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in result["rows"])
    head = json.dumps({**result, "rows": []}, indent=1, ensure_ascii=False)
    with replacing(path) as temporary:
        temporary.write_text(head.removesuffix("[]\n}") + f"[\n{rows}\n ]\n}}\n")


if __name__ == "__main__":
    from report import run  # found by scripts of this folder alone

    run(main)
