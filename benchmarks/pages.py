"""Put the tables of docs/results/*.json into the pages of docs/benchmarks/.

A page names a table by `<!-- table: NAME -->`; what follows, up to `<!-- end -->`, is written here. Scripts
write their results with --out docs/results.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES, RESULTS = ROOT / "docs" / "benchmarks", ROOT / "docs" / "results"
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    for page in PAGES.glob("*.md"):
        page.write_text(filled(page.read_text()))
    if older := [path.stem for path in sorted(RESULTS.glob("*.json")) if is_older(path)]:
        print(f"measured by other code than today's: {', '.join(older)}")


def is_older(path: Path) -> bool:
    """True if the package has changed since the commit of a result."""
    commit = json.loads(path.read_text())["measured"]["commit"]
    command = ["git", "diff", "--quiet", commit or "unknown", "--", "pcreg"]
    return subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL).returncode != 0


def filled(page: str) -> str:
    """The text of a page with its tables."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{table(RESULTS / f'{found[2]}.json')}\n\n{found[3]}", page)


def table(path: Path) -> str:
    """The table of a result in Markdown, and its origin in a sentence."""
    result = json.loads(path.read_text())
    lines = [result["columns"], ["---"] * len(result["columns"]), *result["rows"]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{origin(result['measured'])}"


def origin(measured: dict[str, Any]) -> str:
    """Commit, date, device, versions and command of a result."""
    commit = f"commit {measured['commit']}" if measured["commit"] else "a commit that was not recorded"
    about = ", ".join(measured[key] for key in ("date", "device", "versions") if measured[key])
    return f"*Measured at {commit}, {about}, with `{measured['command']}`.*"


if __name__ == "__main__":
    main()
