"""Pages in a real browser, where one is installed."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def seen_in_a_browser(page: Path, look: str, window: str) -> dict:
    """Result of a script in a page; the script writes JSON between two SEEN into a paragraph."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser installed, none of {', '.join(BROWSERS)}")
    watched = page.with_name("watched.html")
    watched.write_text(page.read_text().replace("</body>", f"{look}</body>"))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    command += [f"--user-data-dir={page.parent}/profile", f"--window-size={window}", "--dump-dom"]
    done = subprocess.run([*command, watched.as_uri()], capture_output=True, text=True, timeout=120)
    return json.loads(html.unescape(re.search(r"SEEN(\{.*?\})SEEN</p>", done.stdout)[1]))
